"""How fast a machine trains: the numbers are of the right size, and the measuring ends."""

import os

import pytest
import torch
from tiny_run import tiny

from epigrok.bench import speed
from epigrok.bench.plain_training import plain_steps
from epigrok.bench.speed import (
    comparable,
    measure_evaluation,
    measure_packed,
    measure_training,
    model_flops_per_step,
)
from epigrok.config import preset
from epigrok.errors import UserError

CPU = torch.device("cpu")


def test_the_papers_step_has_as_many_operations_as_by_hand() -> None:
    """11.3 TFLOP: 18.9 M weights, 98,304 tokens, three passes, and attention over half a window."""
    per_token = 6 * (4 * 512**2 + 2 * 512 * 2048) + 6 * 96 * 512
    found = model_flops_per_step(preset("icl-paper"))
    assert found == 6 * per_token * 1024 * 96
    assert found == pytest.approx(11.3e12, rel=0.01)


def test_operations_grow_with_the_batch() -> None:
    assert model_flops_per_step(tiny(batch_size=64)) == 2 * model_flops_per_step(
        tiny(batch_size=32)
    )


def test_what_is_compared_differs_in_nothing_but_the_optimiser_and_its_end() -> None:
    config = preset("icl-tiny-ivon")
    found = comparable(config)
    assert (found.model, found.task, found.batch_size) == (
        config.model,
        config.task,
        config.batch_size,
    )
    assert type(found.optim).__name__ == "AdamWConfig"
    assert found.evaluation.posteriors == ("point",)
    assert found.num_steps > 10**8


@pytest.mark.parametrize("has_compiler", [True, False])
def test_every_way_of_training_is_measured(
    has_compiler: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def uncompiled(state: object, family: object, config: object, compiled: bool) -> object:
        """Shapes that are checked at run time cannot be compiled."""
        if compiled and not has_compiler:
            raise torch._dynamo.exc.BackendCompilerFailed(plain_steps, RuntimeError(), None)
        return plain_steps(state, family, config, compiled=False)  # type: ignore[arg-type]

    monkeypatch.setattr(speed, "plain_steps", uncompiled)
    found = list(measure_training(comparable(tiny()), CPU, 1, matmul_rate=2.0))
    compiled = ["plain torch.compile"] if has_compiler else []
    assert [s.name for s in found] == ["plain PyTorch", *compiled, "epigrok", "epigrok, IVON"]
    for way in found:
        assert way.milliseconds == pytest.approx(1e3 / way.steps_per_second)
        flops = model_flops_per_step(tiny()) * way.steps_per_second
        assert way.model_tflops == pytest.approx(flops / 1e12)
        assert way.matmul_share == pytest.approx(way.model_tflops / 2.0)
        assert (way.peak_memory_gib, way.kernel_milliseconds) == (None, {})


def test_evaluation_is_measured_on_at_most_three_splits() -> None:
    seconds, num_splits = measure_evaluation(comparable(tiny()), CPU)
    assert seconds > 0
    assert num_splits == len(tiny().task.splits) == 3


@pytest.mark.skipif(torch.cuda.is_available(), reason="here the runs would not die")
def test_a_run_that_dies_ends_the_measurement_and_leaves_the_environment_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KEPT", "old")
    before = dict(os.environ)
    variables = {"KEPT": "new", "ADDED": "new"}
    with pytest.raises(UserError, match="a run died"):
        measure_packed(comparable(preset("classic")), torch.device("cuda"), 2, variables)
    assert dict(os.environ) == before
