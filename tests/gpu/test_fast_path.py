"""What only a GPU computes: steps in kernels (`fused_blocks`), captured steps, evaluation."""

from dataclasses import replace

import pytest
import torch

from epigrok.bench.plain_training import plain_logits, plain_steps
from epigrok.config import AdamWConfig, RunConfig, preset
from epigrok.evaluation import EvaluationRow, evaluate, evaluate_oracles, evaluation_sets
from epigrok.model import build_model
from epigrok.posteriors import Point, WeightNoise
from epigrok.tasks import build_family, sample_world
from epigrok.training import initial_state, training_steps
from epigrok.training.checkpoints import restore_newest, write_checkpoint

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]

SMALL = ("icl-medium", "icl-medium-ivon", "adamw")


def small(name: str) -> RunConfig:
    config = preset("icl-medium" if name == "adamw" else name)
    if name == "adamw":
        config = replace(config, optim=AdamWConfig(lr=5e-4))
    return replace(
        config,
        model=replace(config.model, num_layers=2, width=128, feedforward_width=256),
        schedule=replace(config.schedule, warmup_steps=20),
        evaluation=replace(config.evaluation, num_sequences=256, posteriors=("point",)),
        batch_size=256,
        num_steps=1000,
    )


def losses(config: RunConfig, compiled: bool, number: int) -> torch.Tensor:
    torch.compiler.reset()
    family = build_family(config, sample_world(config.task, 0), "cuda")
    steps = training_steps(initial_state(config, "cuda"), family, config, compiled)
    return torch.stack([next(steps).loss for _ in range(number)])


@pytest.mark.parametrize("precision", ["high", "highest"])
def test_predictions_without_gradients_agree_with_float64(precision: str) -> None:
    config = small("icl-medium")
    model = build_model(config, "cuda")
    tokens = torch.randint(0, 29, (8, 96), device="cuda")
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        with torch.no_grad():
            fast = [model(tokens[:, :length]) for length in (96, 33, 3)]
    finally:
        torch.set_float32_matmul_precision(before)
    model.double()
    for logits, length in zip(fast, (96, 33, 3)):
        exact = plain_logits(model, tokens[:, :length])
        error = (logits.double() - exact).norm() / exact.norm()
        assert error < (2e-3 if precision == "high" else 1e-5)


@pytest.mark.parametrize("name", SMALL)
def test_captured_steps_follow_the_plain_ones(name: str) -> None:
    config = small(name)
    captured, step_by_step = losses(config, True, 200), losses(config, False, 200)
    assert len(set(captured.tolist())) > 190, "every record holds its own loss"
    torch.testing.assert_close(captured, step_by_step, atol=0.01, rtol=0.0)


def test_two_hundred_steps_agree_with_textbook_training() -> None:
    config = small("adamw")
    family = build_family(config, sample_world(config.task, 0), "cuda")
    steps = plain_steps(initial_state(config, "cuda"), family, config, compiled=False)
    plain = torch.stack([next(steps) for _ in range(200)])
    torch.testing.assert_close(losses(config, True, 200), plain, atol=0.01, rtol=0.0)


@pytest.mark.parametrize("name", SMALL)
def test_a_checkpoint_from_the_gpu_goes_on_anywhere(name: str, tmp_path, workspace) -> None:
    config = small(name)
    world = sample_world(config.task, 0)
    torch.compiler.reset()
    state = initial_state(config, "cuda")
    steps = training_steps(state, build_family(config, world, "cuda"), config, True)
    for _ in range(6):
        next(steps)
    write_checkpoint(workspace, tmp_path, state, [], {})
    expected = [next(steps).loss.item() for _ in range(3)]
    for device in ("cuda", "cpu"):
        state = initial_state(config, device)
        assert restore_newest(workspace, tmp_path, state)
        resumed = training_steps(
            state, build_family(config, world, device), config, compiled=device == "cuda"
        )
        assert [next(resumed).loss.item() for _ in range(3)] == pytest.approx(expected, abs=0.01)


def test_evaluation_scores_as_on_a_cpu() -> None:
    config = small("icl-medium")
    world = sample_world(config.task, 0)

    def rows(device: str) -> list[EvaluationRow]:
        model = build_model(config, device)
        sets = evaluation_sets(config, build_family(config, world, device))
        posteriors = [Point.of(model), WeightNoise.relative(model, 0.1)]
        return evaluate_oracles(sets) + evaluate(model, posteriors, sets, 4, 128)

    for one, other in zip(rows("cuda"), rows("cpu"), strict=True):
        for metric in ("epistemic", "nll", "kl_memorising"):
            assert one.summary[metric] == pytest.approx(other.summary[metric], rel=1e-3, abs=1e-6)
