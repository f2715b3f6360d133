"""The classic family: one table, some of its cells for training."""

from collections.abc import Callable

import pytest
import torch
from small_tasks import family_of

from epigrok.config import ClassicTask, preset
from epigrok.config.splits import ID_TRAIN, ID_VAL
from epigrok.tasks import sample_world

OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: (a + b) % 11,
    "subtract": lambda a, b: (a - b) % 11,
    "multiply": lambda a, b: (a * b) % 11,
    "divide": lambda a, b: (a * pow(b, -1, 11)) % 11,
    "quadratic": lambda a, b: (a * a + a * b + b * b) % 11,
}


def cells(rows: torch.Tensor) -> set[tuple[int, ...]]:
    return {tuple(row) for row in rows.tolist()}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_tables_are_complete_and_right(operation: str) -> None:
    world = sample_world(ClassicTask(modulus=11, operation=operation), 0)  # type: ignore[arg-type]
    train, held_out = cells(world["id_train"]), cells(world["id_val"])
    assert not train & held_out
    divisors = range(1 if operation == "divide" else 0, 11)
    result = OPERATIONS[operation]
    assert train | held_out == {(a, b, result(a, b)) for a in range(11) for b in divisors}


def test_random_labels_keep_the_table_but_not_the_rule() -> None:
    shuffled = sample_world(ClassicTask(modulus=31, random_labels=True), 0)
    table = torch.cat([shuffled["id_train"], shuffled["id_val"]])
    assert len(cells(table[:, :2])) == 31 * 31
    assert ((table[:, 0] + table[:, 1]) % 31 == table[:, 2]).float().mean() < 0.1
    assert (table[:, 2].bincount() == 31).all()


def test_a_batch_holds_distinct_training_cells_and_a_split_is_evaluated_whole() -> None:
    config = preset("classic")
    family = family_of(config)
    drawn = family.training_batch(3).tokens_BL
    assert len(cells(drawn)) == config.batch_size
    assert cells(drawn) <= cells(family.world["id_train"])
    for split in (ID_TRAIN, ID_VAL):
        batch = family.evaluation_batch(split, 1, 1)
        assert torch.equal(batch.tokens_BL, family.world[split.name])
        assert torch.equal(batch.answers_BT, batch.tokens_BL[:, 2:])
