"""The step loop: schedule, decay, equality with a plain loop, exact resuming."""

import dataclasses
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from epigrok.config import AdamWConfig, MuonConfig, RunConfig, ScheduleConfig, preset
from epigrok.tasks import build_family, sample_world
from epigrok.training import initial_state, learning_rate_scale, training_steps
from epigrok.training.checkpoints import (
    checkpoint_steps,
    ladder_steps,
    load_weights,
    restore_newest,
    write_checkpoint,
)


def tiny(**changes: object) -> RunConfig:
    schedule = ScheduleConfig(warmup_steps=5)
    base = dataclasses.replace(preset("icl-tiny"), num_steps=30, batch_size=16, schedule=schedule)
    return dataclasses.replace(base, **changes)  # type: ignore[arg-type]


def weights_after(config: RunConfig, num_steps: int) -> list[torch.Tensor]:
    state = initial_state(config)
    family = build_family(config, sample_world(config.task, config.task_seed))
    for record in training_steps(state, family, config):
        if record.step == num_steps:
            break
    return [weights.detach().clone() for weights in state.model.parameters()]


def test_the_learning_rate_warms_up_from_one_percent_and_ends_at_ten() -> None:
    schedule = ScheduleConfig(warmup_steps=1000, initial_scale=0.01, final_scale=0.1)
    scale = [learning_rate_scale(step, schedule, 100_000) for step in range(100_000)]
    assert scale[0] == 0.01
    assert scale[500] == pytest.approx(0.505)
    assert scale[1000] == 1.0
    assert scale[-1] == pytest.approx(0.1)
    assert scale[1000 + 98_999 // 2] == pytest.approx(0.55, abs=1e-4)
    assert all(a < b for a, b in zip(scale[:1000], scale[1:1001]))
    assert all(a > b for a, b in zip(scale[1000:], scale[1001:]))


@pytest.mark.parametrize("warmup_steps", [0, 1, 3])
def test_a_schedule_works_at_its_corners(warmup_steps: int) -> None:
    schedule = ScheduleConfig(warmup_steps=warmup_steps)
    for num_steps in (3, 4):
        scales = [learning_rate_scale(step, schedule, num_steps) for step in range(num_steps)]
        assert all(0.0 < scale <= 1.0 for scale in scales)


def test_adamw_steps_equal_a_plain_loop() -> None:
    config = tiny(optim=AdamWConfig(lr=1e-2, weight_decay=0.5, clip_norm=0.1))
    state = initial_state(config)
    family = build_family(config, sample_world(config.task, 0))
    model = initial_state(config).model.double()
    # In float64: Adam's first updates are signs, which rounding decides where gradients vanish.
    state.model.double()
    decayed = [p for p in model.parameters() if p.ndim == 2]
    rest = [p for p in model.parameters() if p.ndim == 1]
    optimiser = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.5}, {"params": rest, "weight_decay": 0.0}],
        lr=1e-2,
        betas=(0.9, 0.98),
        eps=1e-8,
        foreach=False,
    )
    for _, record in zip(range(8), training_steps(state, family, config)):
        for group in optimiser.param_groups:
            group["lr"] = 1e-2 * learning_rate_scale(record.step - 1, config.schedule, 30)
        batch = family.training_batch(record.step - 1)
        logits = model(batch.tokens_BL)
        loss = torch.nn.functional.cross_entropy(
            logits.transpose(1, 2), batch.answers_BT, reduction="mean"
        )
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimiser.step()
        torch.testing.assert_close(record.loss, loss.detach())
    for ours, plain in zip(state.model.parameters(), model.parameters()):
        torch.testing.assert_close(ours, plain, rtol=1e-9, atol=1e-9)


def test_gains_are_never_decayed_and_muon_moves_only_block_matrices() -> None:
    for optim in (AdamWConfig(weight_decay=0.3), MuonConfig(adamw_weight_decay=0.3)):
        state = initial_state(tiny(optim=optim))
        groups = [group for o in state.optimisers for group in o.param_groups]
        moved = [p for group in groups for p in group["params"]]
        assert {id(p) for p in moved} == {id(p) for p in state.model.parameters()}
        assert len(moved) == len(list(state.model.parameters()))
        for group in groups:
            if any(p.ndim == 1 for p in group["params"]):
                assert group["weight_decay"] == 0.0
    muon = state.optimisers[0]
    assert isinstance(muon, torch.optim.Muon)
    assert all(p.ndim == 2 for p in muon.param_groups[0]["params"])
    embedding = state.model.embedding.weight
    assert all(p is not embedding for p in muon.param_groups[0]["params"])


@pytest.mark.parametrize("optim", [AdamWConfig(lr=1e-3), MuonConfig()])
@pytest.mark.parametrize("interruption", [1, 7, 29])
def test_resuming_is_bit_identical_to_not_stopping(
    optim: AdamWConfig | MuonConfig, interruption: int, tmp_path: Path
) -> None:
    config = tiny(optim=optim)
    family = build_family(config, sample_world(config.task, 0))
    state = initial_state(config)
    for record in training_steps(state, family, config):
        if record.step == interruption:
            break
    write_checkpoint(tmp_path, state, [])
    resumed = initial_state(config)
    assert restore_newest(tmp_path, resumed)
    assert resumed.step == interruption
    for _ in training_steps(resumed, family, config):
        pass
    for ours, theirs in zip(resumed.model.parameters(), weights_after(config, 30)):
        assert torch.equal(ours, theirs)


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


def test_two_checkpoints_can_be_resumed_from_and_the_ladder_keeps_weights(tmp_path: Path) -> None:
    state = initial_state(tiny())
    for step in range(6):
        state.step = step
        write_checkpoint(tmp_path, state, ladder=[0, 2])
    assert checkpoint_steps(tmp_path) == [0, 2, 4, 5]
    assert sorted(path.parent.name for path in tmp_path.glob("*/resume.pt")) == ["step-4", "step-5"]
    weights = load_weights(tmp_path, 2)
    assert torch.equal(weights["embedding.weight"], state.model.head_weight)


def test_a_checkpoint_half_removed_by_a_kill_is_removed_with_the_next(tmp_path: Path) -> None:
    state = initial_state(tiny())
    for step in (3, 5):
        state.step = step
        write_checkpoint(tmp_path, state, ladder=[0])
    (tmp_path / "step-3" / "resume.pt").unlink()
    state.step = 7
    write_checkpoint(tmp_path, state, ladder=[0])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-5", "step-7"]


@pytest.mark.parametrize("damage", ["truncate", "flip", "remove", "empty"])
@pytest.mark.parametrize("name", ["model.safetensors", "resume.pt"])
def test_a_damaged_checkpoint_falls_back_to_the_one_before(
    damage: str, name: str, tmp_path: Path
) -> None:
    state = initial_state(tiny())
    for step in (3, 8):
        state.step = step
        write_checkpoint(tmp_path, state, [])
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
    restored = initial_state(tiny())
    if damage == "remove" and name == "resume.pt":
        assert restore_newest(tmp_path, restored)
    else:
        with pytest.warns(UserWarning, match="step-8 is damaged"):
            assert restore_newest(tmp_path, restored)
    assert restored.step == 3


def test_a_damaged_checkpoint_takes_no_place_among_the_newest(tmp_path: Path) -> None:
    state = initial_state(tiny())
    for step in (5, 8):
        state.step = step
        write_checkpoint(tmp_path, state, [])
    for step in (5, 8):
        (tmp_path / f"step-{step}" / "resume.pt").write_bytes(b"x")
    restored = initial_state(tiny())
    with pytest.warns(UserWarning, match="is damaged") as told:
        assert not restore_newest(tmp_path, restored)
    assert ["starting over" in str(warning.message) for warning in told] == [False, True]
    restored.step = 3
    write_checkpoint(tmp_path, restored, [])
    again = initial_state(tiny())
    assert restore_newest(tmp_path, again)
    assert again.step == 3


def test_half_written_checkpoints_are_cleared_away(tmp_path: Path) -> None:
    state = initial_state(tiny())
    write_checkpoint(tmp_path, state, [])
    leftover = tmp_path / "step-9.123.unfinished"
    leftover.mkdir()
    (leftover / "resume.pt").write_bytes(b"x")
    assert restore_newest(tmp_path, state)
    assert not leftover.exists()
