"""The files of a run directory: all that is known of a run, and all that later stages read.

run.json               format, splits, posteriors: what a reader must know to read the tables
config.json            the complete RunConfig
provenance.json        commit, versions, devices, plugins
world.safetensors      tasks, inputs and hold-outs
NAME.jsonl             a table, one JSON object a line: `evaluation/schema.py` describes each
positions/             metrics by context length, one file per evaluation, until the run is done:
positions-0.parquet    … then one table
checkpoints/step-N/    weights, and for the newest two what resuming needs
status.json            where the run stands
lease.json             who works on it now
log.txt                what a worker of a sweep printed
DONE                   written last: what the run must hold, with digests (`records/manifest.py`)

Nothing here imports torch: looking at results must be instant.
"""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epigrok.config import RunConfig, from_json
from epigrok.config.checks import require
from epigrok.errors import UserError
from epigrok.evaluation.schema import TABLES, TRAINING_TABLES
from epigrok.files import digest_of, read_json, read_json_lines, write_json
from epigrok.records.description import DESCRIPTION, RunDescription, description_from_json
from epigrok.records.foreign import clean_provenance, clean_status
from epigrok.records.manifest import (
    CONFIG,
    DONE,
    KEEPS_WEIGHTS,
    PARQUET,
    WORLD,
    manifest_of,
    read_manifest,
)
from epigrok.records.table_checks import unfit_column
from epigrok.workspace import Workspace

__all__ = ["CONFIG", "PARQUET", "STATUS", "SWEEP", "WORLD", "RunDirectory", "run_directories"]

STATUS = "status.json"
SWEEP = "sweep.json"
"""The file beside the runs of a sweep that describes the sweep."""


@dataclass(frozen=True)
class RunDirectory:
    """Paths and files of one run."""

    path: Path

    @property
    def checkpoints(self) -> Path:
        """Where checkpoints live."""
        return self.path / "checkpoints"

    @property
    def log(self) -> Path:
        """What workers printed."""
        return self.path / "log.txt"

    @property
    def is_done(self) -> bool:
        """Whether the run took its last step and wrote everything down."""
        return read_manifest(self.path) is not None

    def table(self, name: str) -> Path:
        """The JSON-lines file of table `name`."""
        return self.path / TABLES[name].file

    def rows(self, table: str, needed: Collection[str] = ()) -> list[dict[str, Any]]:
        """The rows of a table, as they are written; `tables` reads those of many runs.

        Args:
            table: Its name.
            needed: Columns that every row must have; a row without them is refused, as is a value
                of the wrong type.
        """
        path = self.table(table)
        rows = read_json_lines(path)
        for number, row in enumerate(rows, start=1):
            problem = unfit_column(TABLES[table], row, needed)
            require(problem is None, f"{path} is damaged: its line {number} {problem}")
        return rows

    def description(self) -> RunDescription:
        """What its tables hold; a directory of another format is refused."""
        path = self.path / DESCRIPTION
        if not path.exists() and (self.path / CONFIG).exists():
            raise UserError(
                f"{self.path} was written by an older version of epigrok: it has no {DESCRIPTION}; "
                "train the run again, or open it with the version that wrote it"
            )
        return description_from_json(self._json(DESCRIPTION), path)

    def config_json(self) -> dict[str, Any]:
        """The configuration as it is written."""
        values = self._json(CONFIG)
        if not isinstance(values, dict):
            raise UserError(f"{self.path / CONFIG} is not the configuration of a run")
        return values

    def config(self) -> RunConfig:
        """The configuration the run was started with."""
        description, values = self.description(), self.config_json()
        try:
            return from_json(values)
        except UserError as error:
            missing = description.missing_plugins()
            raise UserError(
                f"{self.path} {missing}" if missing else f"{self.path}: {error}"
            ) from error

    def world(self) -> dict[str, Any]:
        """The tasks and hold-outs the run was started with, as tensors."""
        # Imported here, because only training and evaluation need tensors.
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        path = self.path / WORLD
        manifest = read_manifest(self.path)
        if manifest is not None and path.exists():
            is_intact = manifest["files"].get(WORLD) == digest_of(path)
            require(is_intact, f"{path} is damaged: it changed since the run was finished")
        require(path.is_file() or not path.exists(), f"{path} is not a regular file")
        try:
            return load_file(path)
        except (SafetensorError, OSError) as error:
            raise UserError(f"cannot read {path}: {error}") from error

    def status(self) -> dict[str, Any]:
        """Where the run stands, as last written."""
        return clean_status(_json_or_none(self.path / STATUS))

    def provenance(self) -> dict[str, Any]:
        """Commit, versions and every process that worked on the run."""
        return clean_provenance(_json_or_none(self.path / "provenance.json"))

    def _json(self, name: str) -> Any:
        path = self.path / name
        try:
            return read_json(path)
        except (FileNotFoundError, NotADirectoryError):
            missing = f"it has no {name}" if self.path.exists() else "there is no such directory"
            raise UserError(f"{self.path} is not a run directory: {missing}") from None
        except OSError as error:
            raise UserError(f"cannot read {path}: {error.strerror}") from error
        except ValueError as error:
            raise UserError(f"{path} is not valid JSON: {error}") from error

    def write_status(self, workspace: Workspace | None = None, **values: Any) -> None:
        """Write where the run stands, through the workspace of the process that holds the run."""
        write = write_json if workspace is None else workspace.write_json
        write(self.path / STATUS, values)

    @property
    def keeps_weights(self) -> bool:
        """Whether the run has or will have weights: false where it was to keep only tables."""
        return (read_manifest(self.path) or {}).get(KEEPS_WEIGHTS) is not False

    def mark_done(self, workspace: Workspace | None = None, keeps_weights: bool = True) -> None:
        """Declare the run finished, with everything its directory holds now.

        Args:
            workspace: Of whoever holds the run.
            keeps_weights: Whether its checkpoints stay; the caller removes them afterwards.
        """
        step = self.config_json()["num_steps"]
        tables = {name: self.table(name) for name in TRAINING_TABLES}
        write = write_json if workspace is None else workspace.write_json
        write(self.path / DONE, manifest_of(self.path, tables, step, keeps_weights))


def run_directories(path: Path) -> list[RunDirectory]:
    """The runs of a sweep's directory in order of names, or the one run that `path` is."""
    if (path / CONFIG).exists():
        return [RunDirectory(path)]
    if not path.is_dir():
        problem = f"{path} is a file, not a directory" if path.exists() else None
        raise UserError(problem or f"there is no directory {path}")
    found = [config.parent for config in sorted(path.glob(f"*/{CONFIG}"))]
    # A killed driver may leave a run that it was preparing under a name with a dot.
    return [RunDirectory(run) for run in found if not run.name.startswith(".")]


def _json_or_none(path: Path) -> Any:
    try:
        return read_json(path)
    except (OSError, ValueError, UserError):
        return None
