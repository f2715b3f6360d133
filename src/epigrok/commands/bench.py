"""`epigrok bench`: how fast this machine trains, against plain PyTorch, in one process."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import torch
import tyro

from epigrok.bench.fixed_order import measure_fixed_order
from epigrok.bench.speed import (
    NUM_SAMPLES,
    PLAIN_COMPILED,
    Speed,
    comparable,
    matmul_tflops,
    measure_evaluation,
    measure_packed,
    measure_training,
)
from epigrok.commands.arguments import parse
from epigrok.config import RunConfig, preset
from epigrok.config.checks import require
from epigrok.files import make_writable_directory, write_json
from epigrok.runs.device import DeviceName, choose_device
from epigrok.runs.provenance import this_process
from epigrok.sweeps.engines.gpu_sharing import shared_gpu

EVALUATION_EVERY = 500
OURS, IVON = "epigrok", "epigrok, IVON"


@dataclass(frozen=True, kw_only=True)
class BenchArguments:
    """Measure training steps with AdamW and IVON, evaluation and packing on this machine."""

    preset: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="PRESET")] = "auto"
    """Whose model, task and batch to train; `auto` is icl-paper on a GPU, icl-tiny on a CPU."""
    steps: int | None = None
    """Steps in each of three windows, by default 30 on a GPU and 5 on a CPU."""
    packed: int = 0
    """Also measure this many runs side by side on the device, a process each."""
    kernels: int = 0
    """Also print this many of the GPU kernels of our step, the longest first."""
    json: Path | None = None
    """Also write the results there."""
    device: DeviceName = "auto"

    def __post_init__(self) -> None:
        require(self.steps is None or self.steps > 0, f"steps must be positive, got {self.steps}")
        require(self.kernels >= 0, f"kernels must not be negative, got {self.kernels}")
        require(self.packed >= 0, f"packed must not be negative, got {self.packed}")


def main(arguments: Sequence[str]) -> int:
    """Measure, and print each result at once."""
    parsed = parse(BenchArguments, "bench", arguments)
    if parsed.json is not None:
        make_writable_directory(parsed.json.absolute().parent)
    device = choose_device(parsed.device)
    is_gpu = device.type == "cuda"
    name = parsed.preset if parsed.preset != "auto" else ("icl-paper" if is_gpu else "icl-tiny")
    config = comparable(preset(name))
    rate = matmul_tflops(device)
    machine = this_process(device)
    print(f"{name} on {machine['device']}, torch {machine['versions']['torch']}")
    print(f"large matrix product: {rate:.3g} TFLOP/s\n")
    print(f"{'':<22}{'steps/s':>9}{'ms':>9}{'TFLOP/s':>9}{'of matmul':>11}{'GiB':>7}{'busy':>7}")
    speeds: dict[str, Speed] = {}
    for speed in measure_training(config, device, parsed.steps or (30 if is_gpu else 5), rate):
        speeds[speed.name] = speed
        print(_line(speed), flush=True)
    seconds, num_splits = measure_evaluation(config, device)
    results: dict[str, Any] = {
        "preset": name,
        "machine": machine,
        "matmul_tflops": rate,
        "training": [asdict(speed) for speed in speeds.values()],
        "ivon_step_over_adamw_step": _ratio(speeds, OURS, IVON),
        "seconds_evaluating": seconds,
        "evaluation_share_of_training": seconds * speeds[OURS].steps_per_second / EVALUATION_EVERY,
    }
    num_sequences = config.evaluation.num_sampled_sequences
    if PLAIN_COMPILED in speeds:
        speed_up = results["speed_up_over_torch_compile"] = _ratio(speeds, OURS, PLAIN_COMPILED)
        print(f"\nepigrok against {PLAIN_COMPILED}: {speed_up:.2f}x")
    else:
        print(
            f"\n{PLAIN_COMPILED} is left out: it fails on this machine (is there a C++ compiler?)"
        )
    print(f"IVON's step against AdamW's: {results['ivon_step_over_adamw_step']:.3f}x")
    print(
        f"{NUM_SAMPLES} weight samples on {num_splits} splits of {num_sequences} sequences: "
        f"{seconds:.3g} s, "
        f"{results['evaluation_share_of_training']:.1%} of {EVALUATION_EVERY} steps"
    )
    order = measure_fixed_order(config, device)
    if order is not None:
        share = results["fixed_order_share_of_step"] = order.share_of(speeds[OURS].milliseconds)
        print(
            f"the same weights every time: sums by token take {order.in_order:.3f} ms in order, "
            f"{order.in_any_order:.3f} ms in any; costs {share:.1%} of a step"
        )
    for kernel, milliseconds in islice(speeds[OURS].kernel_milliseconds.items(), parsed.kernels):
        print(f"{milliseconds:9.3f} ms  {kernel[:100]}")
    if parsed.packed:
        results["packed"] = _measure_packing(config, device, parsed.packed)
    if parsed.json is not None:
        write_json(parsed.json, results)
        print(f"written to {parsed.json}")
    return 0


def _measure_packing(config: RunConfig, device: torch.device, number: int) -> dict[str, float]:
    """Steps per second of one run, of several in turns, and of several sharing the GPU."""
    alone = measure_packed(config, device, 1, {})
    speeds = {"runs": number, "one": alone, "together": measure_packed(config, device, number, {})}
    nothing: AbstractContextManager[dict[str, str]] = nullcontext({})
    with shared_gpu() if device.type == "cuda" else nothing as variables:
        if variables:
            speeds["together_sharing"] = measure_packed(config, device, number, variables)
    for name, text in (("together", ""), ("together_sharing", ", with the multi-process service")):
        if name in speeds:
            print(
                f"{number} runs side by side{text}: {speeds[name]:.4g} steps/s in all, "
                f"{speeds[name] / alone:.2f}x of one"
            )
    return speeds


def _line(speed: Speed) -> str:
    memory = "" if speed.peak_memory_gib is None else f"{speed.peak_memory_gib:7.1f}"
    busy = f"{speed.busy_share:7.0%}" if speed.kernel_milliseconds else ""
    return (
        f"{speed.name:<22}{speed.steps_per_second:9.4g}{speed.milliseconds:9.4g}"
        f"{speed.model_tflops:9.3g}{speed.matmul_share:11.1%}{memory}{busy}"
    )


def _ratio(speeds: dict[str, Speed], faster: str, slower: str) -> float:
    return speeds[faster].steps_per_second / speeds[slower].steps_per_second
