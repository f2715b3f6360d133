"""What only a GPU computes: fused kernels, captured steps and compiled evaluation."""

from dataclasses import replace

import pytest
import torch

from epigrok.bench.plain_training import plain_logits, plain_steps
from epigrok.config import AdamWConfig, RunConfig, preset
from epigrok.evaluation import evaluate, evaluation_sets
from epigrok.model import build_model
from epigrok.model.attention import asking_attention, rotary_tables, self_attention
from epigrok.model.feedforward import feedforward
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


@pytest.mark.parametrize("head_width", [32, 64, 128])
@pytest.mark.parametrize("length", [5, 17, 95, 128])
def test_attention_kernels_agree_with_float64(length: int, head_width: int) -> None:
    torch.manual_seed(0)
    rows, heads = 3, 2
    width = heads * head_width
    rotary = rotary_tables(128, head_width).cuda()
    asking = slice(1, None, 3)
    num_asking = len(range(length)[asking])
    shapes = ((rows, length, 3 * width), (rows, num_asking, width), (rows, length, 2 * width))
    inputs = [torch.randn(shape, device="cuda") for shape in shapes]

    def results(kind: torch.dtype) -> list[torch.Tensor]:
        projected, query, key_value = (x.bfloat16().to(kind).requires_grad_() for x in inputs)
        tables = rotary.to(torch.promote_types(kind, torch.float32))
        everywhere = self_attention(projected, tables, heads)
        asked = asking_attention(query, key_value, tables, heads, asking)
        weights = [
            torch.linspace(-1, 1, x.numel(), device="cuda").view_as(x) for x in (everywhere, asked)
        ]
        loss = sum((x * w.to(kind)).sum() for x, w in zip((everywhere, asked), weights))
        return [everywhere, asked, *torch.autograd.grad(loss, (projected, query, key_value))]

    for exact, fused in zip(results(torch.float64), results(torch.bfloat16)):
        error = (fused.double() - exact).norm() / exact.norm()
        assert error < 0.01


@pytest.mark.parametrize(("width", "inner_width"), [(64, 128), (128, 512), (48, 96)])
def test_feedforward_agrees_with_float64(width: int, inner_width: int) -> None:
    torch.manual_seed(0)
    shapes = ((4, 95, width), (inner_width, width), (width, inner_width))
    inputs = [torch.randn(shape, device="cuda") for shape in shapes]

    def results(kind: torch.dtype) -> list[torch.Tensor]:
        leaves = [tensor.bfloat16().to(kind).requires_grad_() for tensor in inputs]
        with torch.autocast("cuda", torch.bfloat16, enabled=kind == torch.bfloat16):
            out = feedforward(*leaves)
        weights = torch.linspace(-1, 1, out.numel(), device="cuda").view_as(out)
        return [out, *torch.autograd.grad((out * weights.to(kind)).sum(), leaves)]

    for exact, fused in zip(results(torch.float64), results(torch.bfloat16)):
        assert (fused.double() - exact).norm() / exact.norm() < 0.01


def test_the_fused_network_agrees_with_the_plain_one() -> None:
    config = small("icl-medium")
    model = build_model(config, "cuda")
    tokens = torch.randint(0, 29, (8, 96), device="cuda")
    exact = plain_logits(model.double(), tokens)
    model.float()
    with torch.autocast("cuda", torch.bfloat16):
        fused = model(tokens)
    assert (fused.double() - exact).norm() / exact.norm() < 0.02


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


def test_compiled_evaluation_scores_as_the_plain_one() -> None:
    config = small("icl-medium")
    model = build_model(config, "cuda")
    sets = evaluation_sets(config, build_family(config, sample_world(config.task, 0), "cuda"))
    posteriors = [Point.of(model), WeightNoise.relative(model, 0.1)]
    compiled = evaluate(model, posteriors, sets, 4, 128)
    with torch.compiler.set_stance("force_eager"):
        eager = evaluate(model, posteriors, sets, 4, 128)
    for one, other in zip(compiled, eager, strict=True):
        assert one.summary["epistemic"] == pytest.approx(
            other.summary["epistemic"], rel=1e-3, abs=1e-9
        )
        assert one.summary["nll"] == pytest.approx(other.summary["nll"], rel=1e-4)
