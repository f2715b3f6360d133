"""Learning rate over a run, as a share of its peak."""

from math import cos, pi

from epigrok.config import ScheduleConfig


def learning_rate_scale(step: int, schedule: ScheduleConfig, num_steps: int) -> float:
    """Share of the peak learning rate for update `step`, counted from 0.

    Linear from `initial_scale` to 1 over the warm-up, then a half cosine to `final_scale`, which
    the last update reaches.
    """
    warmup = schedule.warmup_steps
    if step < warmup:
        return schedule.initial_scale + (1.0 - schedule.initial_scale) * step / warmup
    progress = (step - warmup) / max(1, num_steps - 1 - warmup)
    return schedule.final_scale + (1.0 - schedule.final_scale) * 0.5 * (1.0 + cos(pi * progress))
