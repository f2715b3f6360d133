"""`epigrok train PRESET`: train a run, or go on with it."""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any

import tyro

from epigrok.commands.arguments import parse, preset_and_rest
from epigrok.config import RunConfig, departures_from_recipe, flatten, preset, run_id, to_json
from epigrok.exit_codes import EXIT_FAILED, EXIT_LOST, EXIT_STOPPED
from epigrok.records.directory import RunDirectory
from epigrok.records.lease import LeaseLostError
from epigrok.registry import loaded_plugins
from epigrok.runs import DivergedError, Run, TrainOptions, train


@dataclass(frozen=True, kw_only=True, repr=False)
class ConfigArguments(RunConfig):
    """A run's configuration as flags: all fields but the preset, which is named before them."""

    preset: Annotated[str, tyro.conf.Suppress]

    @classmethod
    def of(cls, config: RunConfig) -> "ConfigArguments":
        """Flags whose defaults are those of a configuration."""
        return cls(**_values(config))

    @property
    def config(self) -> RunConfig:
        """The configuration that the flags describe."""
        return RunConfig(**_values(self))


def _values(config: RunConfig) -> dict[str, Any]:
    return {item.name: getattr(config, item.name) for item in fields(config)}


@dataclass(frozen=True, kw_only=True)
class TrainArguments:
    """Train a preset, with any of its fields changed; on an existing run directory, resume."""

    out: Path | None = None
    """Run directory; by default runs/PRESET-RUNID."""
    config: Annotated[ConfigArguments, tyro.conf.arg(name="")]
    execution: Annotated[TrainOptions, tyro.conf.OmitArgPrefixes] = field(
        default_factory=TrainOptions
    )
    """How the run is executed; its numbers do not depend on it, up to the device's rounding."""


MOST_USED = {
    "out": "run directory; the same one again resumes the run",
    "num_steps": "how long to train",
    "batch_size": "sequences in a step",
    "optim.lr": "peak learning rate",
    "optim.weight_decay": "pull towards small weights",
    "run_seed": "initial weights, batches and noise",
    "task_seed": "which tasks and inputs exist, and which are held out",
    "evaluation.every": "steps between evaluations",
    "evaluation.posteriors": "posteriors to track",
    "device": "auto, cpu or cuda",
}
"""Field -> what it decides, for those that the help names first."""


def description(config: RunConfig) -> str:
    """What `epigrok train PRESET --help` says before it lists all flags in their groups."""
    values = {"out": "DIR", "device": "auto", **flatten(to_json(config))}
    flags = {
        f"--{name.replace('_', '-')} {_text(values[name])}": text
        for name, text in MOST_USED.items()
    }
    width = max(map(len, flags))
    lines = [f"  {flag:<{width}}  {text}" for flag, text in flags.items()]
    return "\n".join(
        [
            str(TrainArguments.__doc__),
            "",
            f"Most used, with the values of {config.preset}:",
            *lines,
            "",
            "All of them, by what they belong to:",
        ]
    )


def _text(value: Any) -> str:
    return f"{value[0]} …" if isinstance(value, list) else str(value)


def main(arguments: Sequence[str]) -> int:
    """Train until done, stopped or failed."""
    name, rest = preset_and_rest("train", arguments)
    default = TrainArguments(config=ConfigArguments.of(preset(name)))
    about = description(preset(name))
    parsed = parse(TrainArguments, f"train {name}", rest, default=default, description=about)
    config, options = parsed.config.config, parsed.execution
    out = parsed.out or Path("runs") / f"{name}-{run_id(config)}"
    if departures := departures_from_recipe(config):
        print(f"note: {', '.join(departures)}; the {name} recipe's settings belong together")
    if RunDirectory(out).is_done:
        train(config, out, options)
        print(f"{out} is finished; nothing to do")
        return 0
    print(f"run directory: {out}", flush=True)
    try:
        run = train(config, out, options, progress=True)
    except (DivergedError, LeaseLostError) as error:
        print(f"epigrok: {error}", file=sys.stderr)
        return EXIT_LOST if isinstance(error, LeaseLostError) else EXIT_FAILED
    return _conclude(run, rest, options.stop_at_step)


def _conclude(run: Run, rest: Sequence[str], stop_at_step: int | None) -> int:
    step = run.directory.status()["step"]
    if not run.is_done:
        # Starting over once more would lose the steps that were just saved.
        flags = [flag for flag in rest if flag.replace("_", "-") != "--start-over"]
        if stop_at_step is not None and step >= stop_at_step:
            flags = _without("--stop-at-step", flags)
        # Taken off the command line before this command saw it.
        plugins = [word for file in loaded_plugins() for word in ("--plugin", str(file))]
        command = shlex.join(["epigrok", *plugins, "train", run.config.preset, *flags])
        print(f"stopped at step {step}, saved; to resume, run: {command}")
        return EXIT_STOPPED
    rows = run.directory.rows("final")
    width = max((len(row["posterior"]) for row in rows), default=0)
    for row in rows:
        print(
            f"{row['split']:<10} {row['posterior']:<{width}}  accuracy {row['accuracy_final']:.4f}"
            f"  nll {row['nll_final']:.4f}  ece {row['ece_final']:.4f}"
        )
    print(f"done; metrics in {run.directory.table('metrics')}")
    return 0


def _without(flag: str, arguments: Sequence[str]) -> list[str]:
    """The arguments without `flag` and its value, in either spelling."""
    kept, is_value = [], False
    for argument in arguments:
        name, equals, _ = argument.partition("=")
        if name.replace("_", "-") == flag:
            is_value = not equals
            continue
        if not is_value:
            kept.append(argument)
        is_value = False
    return kept
