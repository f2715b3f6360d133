"""Metrics by context length while a run goes on: small files, any of which may be damaged."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from epigrok.evaluation.schema import METRIC_NAMES
from epigrok.records.directory import PARQUET
from epigrok.records.position_shards import (
    position_columns,
    position_shards,
    remove_position_shards,
    shard_path,
)
from epigrok.workspace import Workspace


def write_shard(
    run_path: Path, step: int, values: list[float], num_samples: int = 2, metrics: int = 3
) -> Path:
    """One row, `id_val` under `laplace`, with the same values of the first few metrics."""
    file = shard_path(run_path, step)
    file.parent.mkdir(exist_ok=True)
    key = ["metrics", "id_val", "laplace", num_samples]
    metadata = {"rows": json.dumps([key]), "metrics": json.dumps(METRIC_NAMES[:metrics])}
    tensors = {"0": np.tile(np.array(values, np.float32), (metrics, 1))}
    save_file(tensors, file, metadata=metadata)
    return file


def test_a_row_is_a_step_an_evaluation_and_a_length_that_was_asked(tmp_path: Path) -> None:
    write_shard(tmp_path, 100, [0.5, np.nan, 0.25])
    write_shard(tmp_path, 20, [1.0, 2.0, 3.0])
    columns = position_columns(tmp_path)
    assert columns["step"].tolist() == [20, 20, 20, 100, 100]
    assert columns["context_length"].tolist() == [1, 2, 3, 1, 3]
    assert columns["nll"].tolist() == [1.0, 2.0, 3.0, 0.5, 0.25]
    for name, value in (("evaluation", "metrics"), ("split", "id_val"), ("posterior", "laplace")):
        assert columns[name].tolist() == [value] * 5


def test_many_samples_fit_into_their_column(tmp_path: Path) -> None:
    write_shard(tmp_path, 10, [1.0], num_samples=40_000)
    assert position_columns(tmp_path)["num_samples"].tolist() == [40_000]


def test_a_metric_that_an_older_version_did_not_know_is_nan_there(tmp_path: Path) -> None:
    write_shard(tmp_path, 0, [1.0, 2.0], metrics=2)
    write_shard(tmp_path, 10, [3.0, 4.0], metrics=3)
    columns = position_columns(tmp_path)
    assert columns[METRIC_NAMES[1]].tolist() == [1.0, 2.0, 3.0, 4.0]
    np.testing.assert_array_equal(columns[METRIC_NAMES[2]], [np.nan, np.nan, 3.0, 4.0])
    assert columns.keys() >= set(METRIC_NAMES)


@pytest.mark.parametrize(
    "metadata", [None, {}, {"rows": "[", "metrics": "[]"}, {"rows": '[["a"]]', "metrics": "[]"}]
)
def test_a_damaged_file_is_left_out_with_a_warning(
    metadata: dict[str, str] | None, tmp_path: Path
) -> None:
    write_shard(tmp_path, 0, [1.0])
    damaged = shard_path(tmp_path, 10)
    if metadata is None:
        damaged.write_bytes(b"")
    else:
        save_file({"x": np.zeros(1)}, damaged, metadata=metadata)
    with pytest.warns(UserWarning, match=r"step-10\.safetensors is damaged and left out"):
        assert position_columns(tmp_path)["step"].tolist() == [0]


def test_without_files_there_are_no_rows(tmp_path: Path) -> None:
    assert position_shards(tmp_path) == []
    assert all(len(column) == 0 for column in position_columns(tmp_path).values())


def test_files_are_removed_only_once_the_table_is_there(
    tmp_path: Path, workspace: Workspace
) -> None:
    file = write_shard(tmp_path, 0, [1.0])
    remove_position_shards(tmp_path, workspace)
    assert file.exists()
    (tmp_path / PARQUET).touch()
    remove_position_shards(tmp_path, workspace)
    assert not file.parent.exists()
