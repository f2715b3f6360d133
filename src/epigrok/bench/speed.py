"""How fast this machine trains: our step against plain PyTorch's, measured in one process.

Model FLOPs count what the plain network computes, so that computing less shows as a higher rate.
"""

import multiprocessing
import os
import queue
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from multiprocessing.synchronize import Barrier
from statistics import median
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from epigrok.bench.plain_training import plain_steps
from epigrok.config import AdamWConfig, IVONConfig, RunConfig
from epigrok.errors import UserError
from epigrok.evaluation import evaluate, evaluation_precision, evaluation_sets
from epigrok.posteriors import WeightNoise
from epigrok.tasks import TaskFamily, build_family, sample_world
from epigrok.training import TrainState, initial_state, training_steps

PLAIN_COMPILED = "plain torch.compile"
NUM_WINDOWS = 3
"""Windows of steps; a speed is the median over them."""
NUM_SAMPLES, MAX_SPLITS = 16, 3
"""Of the evaluation that is measured."""
PACKED_SECONDS = 10.0
_ENDLESS = 10**9


@dataclass(frozen=True)
class Speed:
    """One way of training, measured."""

    name: str
    steps_per_second: float
    model_tflops: float
    matmul_share: float
    """Of the rate at which the same device multiplies large matrices."""
    peak_memory_gib: float | None
    kernel_milliseconds: dict[str, float]
    """What a GPU computes in one step, by the names of its kernels, longest first."""

    @property
    def milliseconds(self) -> float:
        """Of one step."""
        return 1e3 / self.steps_per_second

    @property
    def busy_share(self) -> float:
        """Share of the time in which a GPU computes; other runs on it can use what is left."""
        return sum(self.kernel_milliseconds.values()) / self.milliseconds


def matmul_tflops(device: torch.device) -> float:
    """Rate of a large matrix product: bfloat16 on a GPU, float32 on a CPU."""
    size, kind = (8192, torch.bfloat16) if device.type == "cuda" else (2048, torch.float32)
    factor = torch.randn(size, size, device=device, dtype=kind)
    seconds = median(
        average_seconds(lambda: factor @ factor, 10, device) for _ in range(NUM_WINDOWS)
    )
    return 2.0 * size**3 / seconds / 1e12


def model_flops_per_step(config: RunConfig) -> float:
    """Multiplications and additions in the matrix products of one plain training step."""
    model = initial_state(config).model
    length = config.task.num_examples * config.task.example_length
    forward = model.flops_per_sequence(length)
    if forward is None:
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            model(torch.zeros(1, length, dtype=torch.int64))
        forward = float(counter.get_total_flops())
    # The backward pass multiplies each matrix twice.
    return 3.0 * forward * config.batch_size


def comparable(config: RunConfig) -> RunConfig:
    """The same model, task and batch under AdamW, without an end."""
    evaluation = replace(config.evaluation, posteriors=("point",))
    return replace(config, optim=AdamWConfig(), evaluation=evaluation, num_steps=_ENDLESS)


def measure_training(
    config: RunConfig, device: torch.device, num_steps: int, matmul_rate: float
) -> Iterator[Speed]:
    """Plain eager, plain compiled, ours, and ours with IVON; `config` is a comparable one.

    Plain compiled is left out where `torch.compile` fails, as it does without a C++ compiler.
    """
    is_gpu = device.type == "cuda"
    ways: dict[str, tuple[RunConfig, Callable[..., Iterator[Any]], bool]] = {
        "plain PyTorch": (config, plain_steps, False),
        PLAIN_COMPILED: (config, plain_steps, True),
        "epigrok": (config, training_steps, is_gpu),
        "epigrok, IVON": (replace(config, optim=IVONConfig()), training_steps, is_gpu),
    }
    for name, (settings, make_steps, compiled) in ways.items():
        try:
            yield _measured(name, settings, device, num_steps, (make_steps, compiled, matmul_rate))
        except torch._dynamo.exc.BackendCompilerFailed:
            if name != PLAIN_COMPILED:
                raise


def _measured(
    name: str,
    config: RunConfig,
    device: torch.device,
    num_steps: int,
    how: tuple[Callable[..., Iterator[Any]], bool, float],
) -> Speed:
    make_steps, compiled, matmul_rate = how
    torch.compiler.reset()
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    steps = make_steps(*_fresh(config, device), config, compiled)
    # Compilation and capture happen in the first steps.
    average_seconds(lambda: next(steps), 5, device)
    seconds = median(
        average_seconds(lambda: next(steps), num_steps, device) for _ in range(NUM_WINDOWS)
    )
    tflops = model_flops_per_step(config) / seconds / 1e12
    memory, kernels = None, {}
    if device.type == "cuda":
        memory = torch.cuda.max_memory_allocated(device) / 2**30
        kernels = _kernel_milliseconds(lambda: next(steps), 5)
    return Speed(name, 1.0 / seconds, tflops, tflops / matmul_rate, memory, kernels)


def _kernel_milliseconds(work: Callable[[], object], times: int) -> dict[str, float]:
    """Time that a GPU spends in each kernel for `work`, on average, longest first."""
    # The default of `acc_events` warns about several cycles; this is a single one.
    with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as profiled:
        for _ in range(times):
            work()
        torch.cuda.synchronize()
    events = sorted(profiled.key_averages(), key=lambda event: -event.self_device_time_total)
    return {
        event.key: event.self_device_time_total / times / 1e3
        for event in events
        if event.self_device_time_total > 0
    }


def measure_evaluation(config: RunConfig, device: torch.device) -> tuple[float, int]:
    """Seconds for 16 samples of all weights, as tracked during training, and on how many splits."""
    torch.compiler.reset()
    state, family = _fresh(config, device)
    sets = dict(islice(evaluation_sets(config, family).items(), MAX_SPLITS))
    posterior = WeightNoise.relative(state.model, 0.1)

    def work() -> None:
        with evaluation_precision(config, device):
            evaluate(
                state.model, [posterior], sets, NUM_SAMPLES, config.evaluation.num_sampled_sequences
            )

    average_seconds(work, 1, device)
    return median(average_seconds(work, 1, device) for _ in range(NUM_WINDOWS)), len(sets)


def measure_packed(
    config: RunConfig, device: torch.device, num_runs: int, variables: dict[str, str]
) -> float:
    """Total steps per second of several runs side by side on one device, a process each.

    Args:
        config: What all of them train, each with its own seed.
        device: Where.
        num_runs: How many.
        variables: Environment of the processes.
    """
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(num_runs), context.Queue()
    workers = [
        context.Process(
            target=_work_beside_others,
            args=(replace(config, run_seed=seed), device, barrier, results),
        )
        for seed in range(num_runs)
    ]
    with _environment(variables):
        for worker in workers:
            worker.start()
    speeds: list[float] = []
    while len(speeds) < num_runs:
        try:
            speeds.append(results.get(timeout=1.0))
        except queue.Empty:
            if any(worker.exitcode for worker in workers):
                for worker in workers:
                    worker.kill()
                raise UserError(
                    "a run died while several were measured side by side; its message is above"
                ) from None
    for worker in workers:
        worker.join()
    return sum(speeds)


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Set environment variables for the processes that start in a `with` block."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ |= variables
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _work_beside_others(
    config: RunConfig, device: torch.device, barrier: Barrier, results: Any
) -> None:
    if device.type == "cpu":
        torch.set_num_threads(1)
    steps = training_steps(*_fresh(config, device), config, device.type == "cuda")
    average_seconds(lambda: next(steps), 5, device)
    barrier.wait()
    started, taken = time.perf_counter(), 0
    while time.perf_counter() - started < PACKED_SECONDS:
        average_seconds(lambda: next(steps), 10, device)
        taken += 10
    results.put(taken / (time.perf_counter() - started))


def _fresh(config: RunConfig, device: torch.device) -> tuple[TrainState, TaskFamily]:
    family = build_family(config, sample_world(config.task, config.task_seed), device)
    return initial_state(config, device), family


def average_seconds(work: Callable[[], object], times: int, device: torch.device) -> float:
    """Average duration of `work`, everything it started on the device included."""
    _synchronise(device)
    started = time.perf_counter()
    for _ in range(times):
        work()
    _synchronise(device)
    return (time.perf_counter() - started) / times


def _synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
