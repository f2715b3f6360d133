"""What a whole run refuses."""

from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace

import pytest

from epigrok import config
from epigrok.config import (
    EvaluationConfig,
    OneParameterTask,
    RunConfig,
    TransformerConfig,
    preset,
    presets,
)
from epigrok.config.overrides import with_fields
from epigrok.config.splits import ID_VAL, Split
from epigrok.errors import UserError


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: replace(preset("icl-paper"), batch_size=1000), "1000"),
        (lambda: replace(preset("classic"), batch_size=5000), "5000"),
        (lambda: replace(preset("icl-paper"), num_steps=10), "warm-up of 1000 steps .* 10"),
        (lambda: replace(preset("classic"), task=OneParameterTask()), "MLP"),
        (lambda: replace(preset("classic"), run_seed=2**63), "64-bit integer"),
        (lambda: replace(preset("classic"), task_seed=-(2**63) - 1), "64-bit integer"),
        (lambda: replace(preset("classic"), num_ladder_checkpoints=1), "at least 2, got 1"),
        (
            lambda: with_fields(preset("classic"), {"evaluation.final_series": ["context-noise"]}),
            "no context to vary",
        ),
        (lambda: EvaluationConfig(posteriors=()), "posteriors is empty; name at least one"),
        (lambda: EvaluationConfig(posteriors=("point", "point")), "listed twice in point, point"),
        (lambda: EvaluationConfig(num_samples=65), "num_final_samples 64"),
        (lambda: EvaluationConfig(num_sequences=0), "num_sequences must be positive, got 0"),
        (lambda: EvaluationConfig(oracle_noise=1.0), "oracle_noise must lie in .*1.0"),
    ],
)
def test_mistakes_are_refused_with_the_offending_value(
    make: Callable[[], object], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        make()


def test_configs_cannot_be_assigned_to() -> None:
    config: RunConfig = preset("classic")
    with pytest.raises(FrozenInstanceError):
        config.run_seed = 1  # type: ignore[misc]


@pytest.mark.parametrize(
    "change",
    [
        {"batch_size": 2_000_000_000},
        {"task": OneParameterTask(num_examples=1_000_000)},
        {"model": TransformerConfig(num_layers=10**9)},
        {"evaluation": EvaluationConfig(num_final_samples=10**12)},
        {"evaluation": EvaluationConfig(num_sequences=10**12)},
    ],
)
def test_sizes_that_fit_nowhere_are_refused_with_the_number(change: dict[str, object]) -> None:
    with pytest.raises(UserError, match=r"would take .* TiB of memory, more than 2 TiB"):
        replace(preset("icl-tiny"), **change)


@pytest.mark.parametrize("name", presets())
def test_a_config_is_shown_on_a_few_lines_that_build_it_again(name: str) -> None:
    made = preset(name, run_seed=7)
    text = repr(made)
    assert len(text.splitlines()) <= 14
    assert max(map(len, text.splitlines())) < 200
    assert eval(text, vars(config)) == made


class WithoutTrainingSplit(OneParameterTask):
    """A task whose first split is not what was trained on."""

    @property
    def splits(self) -> tuple[Split, ...]:
        return (ID_VAL,)


def test_the_first_split_of_a_task_is_what_was_trained_on() -> None:
    with pytest.raises(ValueError, match=r"the first split of a task must be .*ID_TRAIN"):
        replace(preset("icl-tiny"), task=WithoutTrainingSplit())
