"""Settings of the three built-in tasks."""

from collections.abc import Callable

import pytest

from epigrok.config import ClassicTask, OneParameterTask, TaskConfig, TwoParameterTask
from epigrok.config.splits import ID_TRAIN, ID_VAL, OOD_VAL, SPLITS
from epigrok.errors import UserError


def test_splits_follow_from_what_is_held_out() -> None:
    assert TwoParameterTask().splits == SPLITS
    assert OneParameterTask().splits == (ID_TRAIN, ID_VAL, OOD_VAL)
    assert ClassicTask().splits == (ID_TRAIN, ID_VAL)
    without = TwoParameterTask(modulus=2, num_base_tasks=1, num_ood_tasks=0, train_fraction=0.5)
    assert without.splits == OneParameterTask(num_ood_tasks=0).splits == (ID_TRAIN, ID_VAL)


@pytest.mark.parametrize(
    ("task", "num_training_points"),
    [
        (TwoParameterTask(modulus=5, num_base_tasks=3, train_fraction=0.6), 12 * 15),
        (OneParameterTask(modulus=7, num_train_tasks=3, num_ood_tasks=1, train_fraction=0.5), 9),
        (ClassicTask(modulus=5, train_fraction=0.4), 10),
        (ClassicTask(modulus=5, operation="divide", train_fraction=0.5), 10),
    ],
)
def test_training_points_are_task_and_input_cells(
    task: TaskConfig, num_training_points: int
) -> None:
    assert task.num_training_points == num_training_points


def test_tasks_without_zero_leave_fewer_to_choose_from() -> None:
    assert TwoParameterTask(modulus=7, num_base_tasks=2).num_possible_tasks == 49
    few = TwoParameterTask(modulus=7, num_base_tasks=2, allows_zero=False)
    assert few.num_possible_tasks == 36


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TwoParameterTask(modulus=30), "30"),
        (lambda: TwoParameterTask(train_fraction=1.0), "1.0"),
        (lambda: TwoParameterTask(train_fraction=0.0), "0.0"),
        (lambda: TwoParameterTask(modulus=5, num_base_tasks=7), "28 .*only 25 exist"),
        (lambda: TwoParameterTask(modulus=2, num_base_tasks=1), "num_ood_tasks to 0"),
        (lambda: TwoParameterTask(num_ood_tasks=-1), "-1"),
        (lambda: TwoParameterTask(train_fraction=1e-4), "leaves 0 of 841"),
        (lambda: OneParameterTask(num_train_tasks=30), "only 30 exist"),
        (lambda: OneParameterTask(num_train_tasks=30, num_ood_tasks=-1), "-1"),
        (lambda: OneParameterTask(train_fraction=0.99), "leaves 30 of 30"),
        (lambda: OneParameterTask(num_examples=0), "num_examples must be positive"),
        (lambda: ClassicTask(modulus=2, train_fraction=0.1), "leaves 0 of 4"),
    ],
)
def test_mistakes_are_refused_with_the_offending_value(
    make: Callable[[], TaskConfig], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        make()


def test_batches_must_suit_the_task() -> None:
    OneParameterTask().require_batch_size(1)
    TwoParameterTask().require_batch_size(512)
    with pytest.raises(UserError, match="500 is not a multiple of the 256"):
        TwoParameterTask().require_batch_size(500)
    classic = ClassicTask(modulus=5, train_fraction=0.4)
    classic.require_batch_size(10)
    with pytest.raises(UserError, match="11 exceeds the 10"):
        classic.require_batch_size(11)


def test_settings_are_known_by_their_name() -> None:
    for kind in (ClassicTask, OneParameterTask, TwoParameterTask):
        assert TaskConfig.kinds[kind.__name__] is kind
