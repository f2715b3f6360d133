"""The learning rate over a run."""

import pytest

from epigrok.config import ScheduleConfig
from epigrok.training import learning_rate_scale


def test_it_warms_up_from_one_percent_and_ends_at_ten() -> None:
    schedule = ScheduleConfig(warmup_steps=100, initial_scale=0.01, final_scale=0.1)
    scale = [learning_rate_scale(step, schedule, 10_000) for step in range(10_000)]
    assert scale[0] == 0.01
    assert scale[50] == pytest.approx(0.505)
    assert scale[100] == 1.0
    assert scale[-1] == pytest.approx(0.1)
    assert scale[100 + 9_899 // 2] == pytest.approx(0.55, abs=1e-3)
    assert all(a < b for a, b in zip(scale[:100], scale[1:101]))
    assert all(a > b for a, b in zip(scale[100:], scale[101:]))


@pytest.mark.parametrize("warmup_steps", [0, 1, 3])
@pytest.mark.parametrize("num_steps", [3, 4])
def test_it_works_at_its_corners(warmup_steps: int, num_steps: int) -> None:
    schedule = ScheduleConfig(warmup_steps=warmup_steps)
    scales = [learning_rate_scale(step, schedule, num_steps) for step in range(num_steps)]
    assert all(0.0 < scale <= 1.0 for scale in scales)
    assert (max(scales) == 1.0) == (warmup_steps < num_steps)
