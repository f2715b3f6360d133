"""Settings of models, optimisers and the schedule."""

from collections.abc import Callable

import pytest

from epigrok.config import (
    AdamWConfig,
    ClassicTask,
    IVONConfig,
    MLPConfig,
    ModelConfig,
    MuonConfig,
    OneParameterTask,
    ScheduleConfig,
    TransformerConfig,
)
from epigrok.errors import UserError


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TransformerConfig(width=510), "510"),
        (lambda: TransformerConfig(num_layers=0), "num_layers must be positive, got 0"),
        (lambda: MLPConfig(hidden_width=-1), "-1"),
        (lambda: AdamWConfig(lr=0.0), "lr"),
        (lambda: AdamWConfig(betas=(0.9, 1.0)), "1.0"),
        (lambda: AdamWConfig(weight_decay=-0.1), "weight_decay must not be negative, got -0.1"),
        (lambda: MuonConfig(momentum=1.0), "momentum must lie"),
        (lambda: MuonConfig(momentum=-0.1), "momentum must lie"),
        (lambda: IVONConfig(ess=0.0), "ess must be positive, got 0.0"),
        (lambda: IVONConfig(clip_norm=0.0), "clip_norm must be positive, got 0.0"),
        (lambda: ScheduleConfig(warmup_steps=-1), "warmup_steps must not be negative, got -1"),
    ],
)
def test_mistakes_are_refused_with_the_offending_value(
    make: Callable[[], object], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        make()


def test_a_model_refuses_a_task_it_cannot_learn() -> None:
    MLPConfig().require_task(ClassicTask())
    TransformerConfig().require_task(OneParameterTask())
    with pytest.raises(UserError, match=r"an MLP reads .* OneParameterTask shows 6 examples of 2"):
        MLPConfig().require_task(OneParameterTask())
    with pytest.raises(UserError, match=r"a transformer needs .* ClassicTask"):
        TransformerConfig().require_task(ClassicTask())


def test_the_effective_sample_size_is_a_number_or_that_of_the_training_set() -> None:
    assert IVONConfig().effective_sample_size(1234) == 1234.0
    assert IVONConfig(ess=500).effective_sample_size(1234) == 500.0


def test_the_heads_decay_is_that_of_whoever_trains_it() -> None:
    assert AdamWConfig(weight_decay=0.3).head_weight_decay == 0.3
    assert MuonConfig(weight_decay=0.3, adamw_weight_decay=0.7).head_weight_decay == 0.7
    assert IVONConfig(weight_decay=0.2).head_weight_decay == 0.2


def test_settings_are_known_by_their_name() -> None:
    for kind in (MLPConfig, TransformerConfig):
        assert ModelConfig.kinds[kind.__name__] is kind
