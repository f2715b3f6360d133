"""A run to look into: its configuration, its tables and its models."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from epigrok.checkpoint_files import checkpoint_path, checkpoint_steps
from epigrok.config import RunConfig
from epigrok.errors import UserError
from epigrok.model import Network, build_model
from epigrok.records.directory import RunDirectory
from epigrok.records.zoo import unpack_if_zoo
from epigrok.tasks import TaskFamily, build_family
from epigrok.training.checkpoints import load_weights


@dataclass(frozen=True)
class Run:
    """What a run directory holds, read when asked for."""

    directory: RunDirectory

    @property
    def path(self) -> Path:
        """Where it lies."""
        return self.directory.path

    @property
    def is_done(self) -> bool:
        """Whether it took its last step."""
        return self.directory.is_done

    @property
    def config(self) -> RunConfig:
        """What was learnt and how."""
        return self.directory.config()

    @property
    def checkpoints(self) -> list[int]:
        """Steps whose weights are kept."""
        return checkpoint_steps(self.directory.checkpoints)

    def newest_step(self) -> int:
        """The last step whose weights are kept."""
        if not self.checkpoints:
            raise UserError(f"{self.path} has no checkpoint yet")
        return self.checkpoints[-1]

    def metrics(self) -> list[dict[str, Any]]:
        """The curve: one row per step, split and posterior."""
        return self.directory.rows("metrics")

    def sql(self, query: str) -> Any:
        """Ask its tables with DuckDB; `docs/columns.md` names them."""
        # Here and not above: a machine that only trains needs no database library.
        from epigrok.tables.store import open_sweep

        return open_sweep(self.path).sql(query)

    def model(self, step: int | None = None, device: torch.device | str = "cpu") -> Network:
        """The network at a kept step, by default the newest."""
        step = self.newest_step() if step is None else step
        weights = load_weights(self.directory.checkpoints, step)
        model = build_model(self.config)
        try:
            model.load_state_dict(weights)
        except RuntimeError as error:
            path = checkpoint_path(self.directory.checkpoints, step)
            raise UserError(f"{path} holds weights of another model: {error}") from error
        return model.to(device)

    def family(self, device: torch.device | str = "cpu") -> TaskFamily:
        """Its tasks, to draw batches and evaluation rows from."""
        return build_family(self.config, self.directory.world(), device)


def open_run(run_dir: Path | str) -> Run:
    """The run in `run_dir`, running or done; `zoo:NAME` is one that comes with the package."""
    directory = RunDirectory(unpack_if_zoo(run_dir))
    directory.config()
    return Run(directory)
