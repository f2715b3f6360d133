"""Checkpoints: exact resuming, what is kept, and what survives damage."""

import errno
import os
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_tasks import TINY_IVON, one_parameter_run, train_until

from epigrok.checkpoint_files import checkpoint_steps
from epigrok.config import AdamWConfig, MuonConfig, OptimiserConfig, RunConfig
from epigrok.errors import UserError
from epigrok.model import build_model
from epigrok.training import initial_state
from epigrok.training.checkpoints import (
    keep_resumable,
    ladder_steps,
    load_carried_posterior,
    load_weights,
    restore_newest,
    write_checkpoint,
)
from epigrok.workspace import Workspace

OPTIMISERS: dict[str, OptimiserConfig] = {
    "adamw": AdamWConfig(lr=1e-3),
    "muon": MuonConfig(),
    "ivon": replace(TINY_IVON, num_train_samples=2),
}


def config_of(optimiser: str) -> RunConfig:
    return one_parameter_run(optim=OPTIMISERS[optimiser])


@cache
def weights_of_whole_run(optimiser: str) -> list[torch.Tensor]:
    state = initial_state(config_of(optimiser))
    train_until(state, config_of(optimiser), 12)
    return list(state.model.parameters())


@pytest.mark.parametrize("optimiser", OPTIMISERS)
@pytest.mark.parametrize("interruption", [1, 7, 11])
def test_resuming_is_bit_identical_to_not_stopping(
    optimiser: str, interruption: int, tmp_path: Path, workspace: Workspace
) -> None:
    config = config_of(optimiser)
    state = initial_state(config)
    train_until(state, config, interruption)
    write_checkpoint(workspace, tmp_path, state, [], {})
    resumed = initial_state(config)
    assert restore_newest(workspace, tmp_path, resumed)
    assert resumed.step == interruption
    train_until(resumed, config, 12)
    whole = weights_of_whole_run(optimiser)
    for ours, theirs in zip(resumed.model.parameters(), whole, strict=True):
        assert torch.equal(ours, theirs)


def test_the_carried_posterior_travels_with_the_checkpoint(
    tmp_path: Path, workspace: Workspace
) -> None:
    config = config_of("ivon")
    state = initial_state(config)
    train_until(state, config, 3)
    write_checkpoint(workspace, tmp_path, state, [], {})
    model = build_model(config)
    model.load_state_dict(load_weights(tmp_path, 3))
    ours, theirs = load_carried_posterior(tmp_path, 3, model), state.carried_posterior()
    assert ours is not None
    assert theirs is not None
    assert ours.name == "ivon"
    buffers = {name for name, _ in model.named_buffers()}
    assert buffers
    assert buffers <= ours.mean.keys()
    for name, weights in theirs.sample(2).items():
        assert torch.equal(ours.sample(2)[name], weights)


def test_other_optimisers_leave_no_posterior(tmp_path: Path, workspace: Workspace) -> None:
    state = initial_state(config_of("adamw"))
    write_checkpoint(workspace, tmp_path, state, [], {})
    assert load_carried_posterior(tmp_path, 0, state.model) is None


def test_weights_of_a_step_that_was_not_kept_are_refused_with_those_that_were(
    tmp_path: Path,
    workspace: Workspace,
) -> None:
    write_checkpoint(workspace, tmp_path, initial_state(config_of("adamw")), [], {})
    with pytest.raises(UserError, match=r"no checkpoint of step 7 .* there are: \[0\]"):
        load_weights(tmp_path, 7)


def test_weights_are_checked_whenever_they_are_read(tmp_path: Path, workspace: Workspace) -> None:
    state = initial_state(config_of("ivon"))
    write_checkpoint(workspace, tmp_path, state, [], {})
    readers = {
        "model.safetensors": lambda: load_weights(tmp_path, 0),
        "deviations.safetensors": lambda: load_carried_posterior(tmp_path, 0, state.model),
    }
    for name, read in readers.items():
        file = tmp_path / "step-0" / name
        content = bytearray(file.read_bytes())
        content[-1] ^= 64
        file.write_bytes(content)
        with pytest.raises(UserError, match=f"step-0 is damaged: {name} changed after"):
            read()
        content[-1] ^= 64
        file.write_bytes(content)
    (tmp_path / "step-0" / "digests.json").unlink()
    with pytest.raises(UserError, match=r"damaged: digests\.json is missing"):
        load_weights(tmp_path, 0)


def test_the_ladder_is_log_spaced_from_the_start_to_the_end() -> None:
    steps = ladder_steps(100_000, 12)
    assert steps[0] == 0
    assert steps[1] == 1000
    assert steps[-1] == 100_000
    assert len(steps) == 12
    ratios = [b / a for a, b in zip(steps[1:], steps[2:])]
    assert max(ratios) / min(ratios) < 1.01
    assert ladder_steps(3, 12) == [0, 1, 2, 3]


@given(num_steps=st.integers(1, 3000), num_rungs=st.integers(2, 200))
def test_the_ladder_has_as_many_rungs_as_asked_for(num_steps: int, num_rungs: int) -> None:
    steps = ladder_steps(num_steps, num_rungs)
    assert steps == sorted(set(steps))
    assert (steps[0], steps[-1]) == (0, num_steps)
    assert len(steps) == min(num_rungs, num_steps + 1)


def test_two_checkpoints_can_be_resumed_from_and_the_ladder_keeps_weights(
    tmp_path: Path, workspace: Workspace
) -> None:
    state = initial_state(config_of("adamw"))
    for step in range(6):
        state.step = step
        write_checkpoint(workspace, tmp_path, state, ladder=[0, 2], extents={})
    assert checkpoint_steps(tmp_path) == [0, 2, 4, 5]
    assert sorted(path.parent.name for path in tmp_path.glob("*/resume.pt")) == ["step-4", "step-5"]
    weights = load_weights(tmp_path, 2)
    assert torch.equal(weights["embedding.weight"], state.model.head_weight)


def test_a_finished_run_keeps_nothing_to_resume_from(tmp_path: Path, workspace: Workspace) -> None:
    state = initial_state(config_of("adamw"))
    for step in (0, 3, 5):
        state.step = step
        write_checkpoint(workspace, tmp_path, state, ladder=[0, 5], extents={})
    keep_resumable(workspace, tmp_path, ladder=[0, 5], number=0)
    assert checkpoint_steps(tmp_path) == [0, 5]
    assert not list(tmp_path.glob("*/resume.pt"))
    assert not restore_newest(workspace, tmp_path, state)


def test_a_checkpoint_half_removed_by_a_kill_is_removed_with_the_next(
    tmp_path: Path, workspace: Workspace
) -> None:
    state = initial_state(config_of("adamw"))
    for step in (3, 5):
        state.step = step
        write_checkpoint(workspace, tmp_path, state, ladder=[0], extents={})
    (tmp_path / "step-3" / "resume.pt").unlink()
    state.step = 7
    write_checkpoint(workspace, tmp_path, state, ladder=[0], extents={})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-5", "step-7"]


@pytest.mark.parametrize("damage", ["truncate", "flip", "remove", "empty"])
@pytest.mark.parametrize("name", ["model.safetensors", "resume.pt"])
def test_a_damaged_checkpoint_falls_back_to_the_one_before(
    damage: str, name: str, tmp_path: Path, workspace: Workspace
) -> None:
    state = initial_state(config_of("adamw"))
    for step in (3, 8):
        state.step = step
        write_checkpoint(workspace, tmp_path, state, [], {})
    file = tmp_path / "step-8" / name
    content = bytearray(file.read_bytes())
    if damage == "truncate":
        file.write_bytes(content[: len(content) // 2])
    elif damage == "flip":
        content[-100] ^= 1
        file.write_bytes(content)
    elif damage == "remove":
        file.unlink()
    else:
        file.write_bytes(b"")
    restored = initial_state(config_of("adamw"))
    if damage == "remove" and name == "resume.pt":
        assert restore_newest(workspace, tmp_path, restored)
    else:
        with pytest.warns(UserWarning, match="step-8 is damaged"):
            assert restore_newest(workspace, tmp_path, restored)
    assert restored.step == 3


def test_a_damaged_checkpoint_takes_no_place_among_the_newest(
    tmp_path: Path, workspace: Workspace
) -> None:
    state = initial_state(config_of("adamw"))
    for step in (5, 8):
        state.step = step
        write_checkpoint(workspace, tmp_path, state, [], {})
    for step in (5, 8):
        (tmp_path / f"step-{step}" / "resume.pt").write_bytes(b"x")
    restored = initial_state(config_of("adamw"))
    with pytest.warns(UserWarning, match="is damaged") as told:
        assert not restore_newest(workspace, tmp_path, restored)
    assert ["moved to damaged-step" in str(warning.message) for warning in told] == [True, True]
    moved = ["damaged-step-5-0", "damaged-step-8-0"]
    assert sorted(path.name for path in tmp_path.iterdir()) == moved
    restored.step = 3
    write_checkpoint(workspace, tmp_path, restored, [], {})
    again = initial_state(config_of("adamw"))
    assert restore_newest(workspace, tmp_path, again)
    assert again.step == 3


@pytest.mark.parametrize("name", ["model.safetensors", "resume.pt", "digests.json"])
@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO, errno.ESTALE, errno.EMFILE])
def test_a_file_that_cannot_be_read_now_costs_no_checkpoint(
    name: str,
    number: int,
    tmp_path: Path,
    workspace: Workspace,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = initial_state(config_of("adamw"))
    write_checkpoint(workspace, tmp_path, state, [], {})
    before = sorted(tmp_path.rglob("*"))

    def failing(opened: Callable[..., Any]) -> Callable[..., Any]:
        def fail(path: Path, *arguments: Any, **options: Any) -> Any:
            if Path(path).name == name:
                raise OSError(number, os.strerror(number), str(path))
            return opened(path, *arguments, **options)

        return fail

    monkeypatch.setattr(Path, "open", failing(Path.open))
    monkeypatch.setattr(os, "open", failing(os.open))
    with pytest.raises(OSError, match=os.strerror(number)):
        restore_newest(workspace, tmp_path, state)
    monkeypatch.undo()
    assert sorted(tmp_path.rglob("*")) == before
    assert restore_newest(workspace, tmp_path, state)


def test_how_far_tables_were_written_comes_back_with_the_checkpoint(
    tmp_path: Path, workspace: Workspace
) -> None:
    extents = {"metrics": {"rows": 3, "bytes": 60, "digest": "x"}}
    state = initial_state(config_of("adamw"))
    write_checkpoint(workspace, tmp_path, state, [], extents)
    restored = restore_newest(workspace, tmp_path, state)
    assert restored is not None
    assert (restored.step, restored.extents) == (0, extents)
