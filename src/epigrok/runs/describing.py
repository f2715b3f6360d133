"""The description of a run: what its tables will hold, and which plugins it needs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from epigrok.config import RunConfig, to_json
from epigrok.files import write_json
from epigrok.model.network import model_builder
from epigrok.posteriors import kind_of, require_posteriors
from epigrok.records.description import DESCRIPTION, NeededPlugin, RunDescription, TrackedPosterior
from epigrok.records.directory import CONFIG
from epigrok.registry import plugin_of
from epigrok.tasks.family import family_class
from epigrok.workspace import Workspace


def describe(config: RunConfig) -> RunDescription:
    """Describe the run of `config`; an unknown task, model or posterior is an error."""
    require_posteriors(config)
    task = config.task
    names = config.evaluation.posteriors
    used: list[tuple[str, Callable[..., Any]]] = [
        (f"task {type(task).__name__}", family_class(task)),
        (f"model {type(config.model).__name__}", model_builder(config.model)),
        *((f"posterior {name}", kind_of(name).build) for name in names),
    ]
    provided: dict[tuple[str, str], list[str]] = {}
    for what, entry in used:
        plugin = plugin_of(entry)
        if plugin is not None:
            provided.setdefault((plugin.file, plugin.digest), []).append(what)
    return RunDescription(
        num_classes=task.vocabulary_size,
        num_examples=task.num_examples,
        splits=task.splits,
        posteriors=tuple(
            TrackedPosterior(name, kind_of(name).role, kind_of(name).facts) for name in names
        ),
        plugins=tuple(
            NeededPlugin(file, digest, tuple(what)) for (file, digest), what in provided.items()
        ),
    )


def write_identity(path: Path, config: RunConfig, workspace: Workspace | None = None) -> None:
    """Write description and configuration; the configuration, which readers look for, is last."""
    write = write_json if workspace is None else workspace.write_json
    write(path / DESCRIPTION, describe(config).to_json())
    write(path / CONFIG, to_json(config))
