"""Open a run: its configuration, its tables, its models and their posteriors."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from epigrok.checkpoint_files import checkpoint_path, checkpoint_steps
from epigrok.config import RunConfig
from epigrok.errors import UserError
from epigrok.evaluation import evaluation_precision, fitted_posteriors
from epigrok.evaluation.grokking_times import NEEDED_COLUMNS
from epigrok.model import Network, build_model
from epigrok.posteriors import Posterior
from epigrok.records.directory import RunDirectory
from epigrok.records.zoo import unpack_if_zoo
from epigrok.tasks import TaskFamily, build_family
from epigrok.training.checkpoints import load_carried_posterior, load_weights


@dataclass(frozen=True)
class Run:
    """The content of a run directory, read on demand."""

    directory: RunDirectory

    def __repr__(self) -> str:
        """Where it lies, what it is and how far it is."""
        status = self.directory.status()
        config = self.config
        progress = f"{status.get('state', 'unknown')} at step {status.get('step', 0)}"
        return (
            f"Run({str(self.path)!r}: {config.preset}, {progress} of {config.num_steps}, "
            f"{len(self.checkpoints)} checkpoints)"
        )

    @property
    def path(self) -> Path:
        """The run directory."""
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
        if not self.directory.keeps_weights:
            raise UserError(
                f"{self.path} was kept without weights; to have them, train the run again in "
                "another directory"
            )
        if not self.checkpoints:
            raise UserError(f"{self.path} has no checkpoint yet")
        return self.checkpoints[-1]

    def metrics(self) -> list[dict[str, Any]]:
        """The curve: one row per step, split and posterior."""
        return self.directory.rows("metrics", NEEDED_COLUMNS)

    def sql(self, query: str) -> Any:
        """Query its tables with DuckDB; `docs/columns.md` names them."""
        # Imported here, because a machine that only trains needs no database library.
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

    def posterior(
        self, name: str, step: int | None = None, device: torch.device | str = "cpu"
    ) -> Posterior:
        """The posterior called `name` at a kept step, by default the newest: see `predict`.

        Those that are fitted to data are fitted to what the run itself fits them to.
        """
        step = self.newest_step() if step is None else step
        model = self.model(step, device)
        carried = load_carried_posterior(self.directory.checkpoints, step, model)
        with evaluation_precision(self.config, next(model.parameters()).device):
            (fitted,) = fitted_posteriors(self.config, model, self.family(device), carried, (name,))
        return fitted

    def family(self, device: torch.device | str = "cpu") -> TaskFamily:
        """Its task family, which makes batches and evaluation sequences."""
        return build_family(self.config, self.directory.world(), device)


def open_run(run_dir: Path | str) -> Run:
    """The run in `run_dir`, finished or not; `zoo:NAME` is one that comes with the package."""
    directory = RunDirectory(unpack_if_zoo(run_dir))
    directory.config()
    return Run(directory)
