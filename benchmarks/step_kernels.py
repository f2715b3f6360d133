"""What a GPU computes in one training step, kernel by kernel: `python -m benchmarks.step_kernels`.

Prints, for each preset and optimiser, steps per second (three windows, their median first), the
time in kernels, launches, memory, and the twenty longest kernels.
"""

from dataclasses import replace
from datetime import UTC, datetime
from statistics import median

import torch
from torch.profiler import ProfilerActivity, profile

from epigrok.bench.speed import average_seconds
from epigrok.config import AdamWConfig, RunConfig, preset
from epigrok.tasks import build_family, sample_world
from epigrok.training import initial_state, training_steps

SETTINGS = (
    ("icl-small", "adamw"),
    ("icl-small", "muon"),
    ("icl-small-ivon", "ivon"),
    ("icl-medium", "adamw"),
    ("icl-medium", "muon"),
    ("icl-medium-ivon", "ivon"),
    ("icl-paper", "adamw"),
    ("icl-paper-ivon", "ivon"),
)
NUM_STEPS, NUM_WINDOWS, NUM_KERNELS = 100, 3, 20


def main() -> None:
    import triton

    versions = f"torch {torch.__version__.partition('+')[0]}, triton {triton.__version__}"
    machine = f"{torch.cuda.get_device_name()}, {versions}, {datetime.now(UTC).date()}"
    print(f"{machine}; one step each, the {NUM_KERNELS} longest kernels", flush=True)
    for preset_name, optimiser in SETTINGS:
        config = replace(preset(preset_name), num_steps=10**9)
        if optimiser == "adamw":
            config = replace(config, optim=AdamWConfig())
        measure(f"{preset_name} {optimiser}", config)


def measure(name: str, config: RunConfig) -> None:
    device = torch.device("cuda")
    torch.compiler.reset()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    family = build_family(config, sample_world(config.task, config.task_seed), device)
    steps = training_steps(initial_state(config, device), family, config, compiled=True)
    average_seconds(lambda: next(steps), 10, device)
    speeds = [
        1.0 / average_seconds(lambda: next(steps), NUM_STEPS, device) for _ in range(NUM_WINDOWS)
    ]
    gibibytes = torch.cuda.max_memory_allocated() / 2**30
    with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as profiled:
        next(steps)
        torch.cuda.synchronize()
    events = [event for event in profiled.key_averages() if event.self_device_time_total > 0]
    events.sort(key=lambda event: -event.self_device_time_total)
    in_kernels = sum(event.self_device_time_total for event in events) / 1e3
    launches, speed = sum(event.count for event in events), median(speeds)
    print(
        f"\n== {name}: {speed:.1f} steps/s, {1e3 / speed:.3f} ms "
        f"(all {[round(one, 1) for one in speeds]}), kernels {in_kernels:.3f} ms, "
        f"{launches} launches, {gibibytes:.2f} GiB"
    )
    for event in events[:NUM_KERNELS]:
        each = event.self_device_time_total / event.count
        print(
            f"{event.self_device_time_total:9.1f} us {event.count:6.1f} x {each:8.2f}  "
            f"{event.key[:100]}",
            flush=True,
        )


if __name__ == "__main__":
    main()
