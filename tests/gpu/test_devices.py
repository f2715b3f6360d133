"""Nothing mixes devices. No GPU is needed: one is pretended, which refuses tensors of the CPU."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from pretended_gpu import GPU, OnGpu, pretended_gpu
from tiny_run import EVALUATION, tiny
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._device import _device_constructors
from torch.utils.data import DataLoader, TensorDataset

import epigrok
from epigrok.config import IVONConfig, RunConfig, preset
from epigrok.monitor import GrokMonitor, MonitorSettings, ToleranceSettings
from epigrok.monitor.noise import row_tolerances
from epigrok.posteriors import (
    IVON,
    DiagonalLaplace,
    Ensemble,
    ExactLaplace,
    LastLayerLaplace,
    MCDropout,
    Point,
    WeightNoise,
    head_inputs,
)
from epigrok.runs.evaluating import EvaluateOptions, evaluate_run
from epigrok.runs.training import TrainOptions, train
from epigrok.runs.watching import looks_at_checkpoints

CLASSES = 5


@pytest.fixture(autouse=True)
def _gpu() -> Iterator[None]:
    torch.manual_seed(0)
    with pretended_gpu():
        yield


@pytest.mark.parametrize(
    "mistake",
    [
        lambda x: x + torch.arange(4.0),
        lambda x: torch.stack([x, torch.zeros(4)]),
        lambda x: x.where(torch.ones(4, dtype=torch.bool), 0.0),
        lambda x: torch.zeros(4)[x.long()],
        lambda x: torch.zeros(4).scatter_add_(0, x.long(), x),
        lambda x: x.numpy(),
        lambda x: torch.randn(4, device=x.device, generator=torch.Generator()),
        lambda x: nn.Linear(4, 2)(x),
        lambda x: x.kthvalue(2),
        lambda x: x.median(dim=0),
        lambda x: x.cumsum(dim=0),
    ],
)
def test_the_pretended_gpu_refuses_what_a_gpu_refuses(mistake: Callable[[Tensor], object]) -> None:
    with pytest.raises((RuntimeError, TypeError, AssertionError), match="cuda"):
        mistake(torch.zeros(4, device="cuda"))


def test_the_pretended_gpu_takes_what_a_gpu_takes() -> None:
    x = torch.arange(4.0, device=GPU)
    assert x.is_cuda
    assert (x + torch.tensor(1.0)).device == x[torch.tensor([1, 2])].device == GPU
    assert x.cpu().numpy().tolist() == x.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert isinstance(nn.Linear(4, 2).to("cuda")(x), OnGpu)


def network() -> nn.Module:
    layers = (nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2))
    return nn.Sequential(*layers, nn.Linear(16, CLASSES)).to("cuda")


def inputs(number: int = 128) -> Tensor:
    return 5.0 * torch.randn(number, 6, device="cuda")


@pytest.mark.parametrize("noise_on", ["head", "network"])
@pytest.mark.parametrize("where", ["cpu", "cuda"])
def test_a_monitor_looks_at_a_model_on_a_gpu(noise_on: str, where: str) -> None:
    model, seen, held_out = network(), inputs().to(where), inputs().to(where)
    settings = MonitorSettings(noise_on=noise_on)  # type: ignore[arg-type]
    loader = DataLoader(TensorDataset(held_out, torch.zeros(len(held_out), device=where)), 32)
    monitor = GrokMonitor(model, seen, {"a": held_out, "b": loader}, settings=settings)
    for step in range(3):
        reading = monitor.update(
            step, train_loss=inputs().square().mean(), posterior=Point.of(model)
        )
    assert reading["a"].tolerance > 0
    assert monitor.network_tolerance("b").value > 0


def test_tolerances_of_rows_are_read_on_a_gpu() -> None:
    rows = row_tolerances(head_inputs(network(), inputs()), ToleranceSettings())
    assert rows.device == GPU


def posteriors(model: nn.Module) -> Iterator[object]:
    batches = [(inputs(), torch.randint(CLASSES, (128,))) for _ in range(2)]
    for laplace in (LastLayerLaplace, ExactLaplace, DiagonalLaplace):
        yield laplace.fit(model, batches)
    yield Point.of(model)
    yield MCDropout.of(model)
    yield Ensemble.of([model, network()])
    yield WeightNoise.relative(model, 0.1)
    yield WeightNoise.isotropic(model, 0.1)
    yield IVON(model.parameters(), 0.1, 100.0, compiled=False).posterior(model)


def test_every_posterior_predicts_on_a_gpu(tmp_path: Path) -> None:
    model = network()
    for posterior in posteriors(model):
        prediction = epigrok.predict(model, posterior, inputs(), num_samples=3)
        assert prediction.epistemic.device == prediction.standard_errors.total.device == GPU
        posterior.save(tmp_path / "posterior")


EVERY_KIND = ("point", "laplace", "laplace-probit", "laplace-exact", "weight-noise:0.1")
CONFIGS = {
    "icl": tiny(replace(EVALUATION, posteriors=EVERY_KIND), num_steps=6),
    "ivon": tiny(
        replace(EVALUATION, posteriors=(*EVERY_KIND, "ivon", "ivon-isotropic")),
        num_steps=6,
        optim=IVONConfig(),
    ),
    "classic": replace(
        preset("classic"),
        num_steps=6,
        schedule=replace(preset("classic").schedule, warmup_steps=3),
        evaluation=replace(EVALUATION, posteriors=EVERY_KIND[:2]),
    ),
}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_a_run_trains_evaluates_and_resumes_on_a_gpu(config: RunConfig, tmp_path: Path) -> None:
    options = TrainOptions(device="cuda", compiled=False, stop_at_step=3)
    assert not train(config, tmp_path, options).is_done
    run = train(config, tmp_path, replace(options, stop_at_step=None))
    assert run.is_done
    assert evaluate_run(run, EvaluateOptions(device="cuda", num_samples=2))
    assert list(looks_at_checkpoints(run, "cuda"))


class DefaultDevice(TorchFunctionMode):
    """New tensors are on the GPU unless they say where, as after `torch.set_default_device`."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        del types
        kwargs = dict(kwargs or {})
        if func in _device_constructors() and kwargs.get("device") is None:
            kwargs["device"] = GPU
        return func(*args, **kwargs)


@pytest.mark.parametrize("noise_on", ["head", "network"])
def test_a_monitor_looks_where_new_tensors_are_on_a_gpu_by_default(noise_on: str) -> None:
    model, seen, held_out = network(), inputs(), inputs()
    settings = MonitorSettings(noise_on=noise_on)  # type: ignore[arg-type]
    with DefaultDevice():
        monitor = GrokMonitor(model, seen, {"held out": held_out}, settings=settings)
        for step in range(1, 4):
            reading = monitor.update(step, train_accuracy=1.0)
        assert reading["held out"].steadiness == 1.0
        other = GrokMonitor(model, seen, {"held out": held_out}, settings=settings)
        other.load_state_dict(monitor.state_dict())
        assert other.update(5).step == 5
