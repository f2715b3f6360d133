"""The paper's family: z = a·x + b·y mod p."""

import math
from dataclasses import replace

import pytest
import torch
from small_tasks import family_of

from epigrok.config import RunConfig, Split, TwoParameterTask, preset
from epigrok.config.splits import ID_VAL, SPLITS
from epigrok.errors import UserError
from epigrok.tasks import Batch, InContextFamily, sample_world

CONSTRUCTIONS = ("parallelogram", "random")


def small_paper_config(**task: object) -> RunConfig:
    task_config = TwoParameterTask(**{"num_base_tasks": 8, "num_examples": 5} | task)
    return replace(preset("icl-paper"), task=task_config, batch_size=128)


def pairs(rows: torch.Tensor) -> set[tuple[int, ...]]:
    return {tuple(row) for row in rows.reshape(-1, rows.shape[-1]).tolist()}


def triplets(batch: Batch) -> torch.Tensor:
    return batch.tokens_BL.unflatten(1, (-1, 3))


def follow(rows: torch.Tensor, tasks: torch.Tensor, modulus: int = 29) -> bool:
    """Whether row k, and the rows a whole turn later, answer by task k."""
    tasks = tasks.repeat(len(rows) // len(tasks), 1)[:, None]
    return torch.equal((rows[..., :2] * tasks).sum(dim=-1) % modulus, rows[..., 2])


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
def test_seen_and_unseen_tasks_and_inputs_do_not_meet(construction: str) -> None:
    for seed in range(5):
        config = TwoParameterTask(num_base_tasks=64, construction=construction)  # type: ignore[arg-type]
        world = sample_world(config, seed)
        train, ood = pairs(world["train_tasks"]), pairs(world["ood_tasks"])
        assert (len(train), len(ood)) == (256, 256)
        assert not train & ood
        seen, unseen = pairs(world["train_inputs"]), pairs(world["val_inputs"])
        assert (len(seen), len(unseen)) == (673, 168)
        assert not seen & unseen


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
def test_tasks_without_zero_coefficients_can_be_asked_for(construction: str) -> None:
    config = small_paper_config(num_base_tasks=32, construction=construction, allows_zero=False)
    family = family_of(config)
    world = family.world
    assert (len(world["train_tasks"]), len(world["ood_tasks"])) == (128, 256)
    assert world["train_tasks"].min() >= 1
    assert world["ood_tasks"].min() >= 1
    assert isinstance(family, InContextFamily)
    considered = family.hypotheses()
    assert considered.answers_AN.shape == (28 * 28, 29 * 29)
    assert considered.is_trained_A.sum() == 128


def test_fewer_unseen_tasks_than_asked_for_means_all_that_remain() -> None:
    world = sample_world(TwoParameterTask(modulus=13, num_base_tasks=20), 0)
    assert len(pairs(world["ood_tasks"])) == 169 - 80


@pytest.mark.parametrize("repeats_inputs", [True, False])
def test_training_rows_repeat_inputs_by_chance_or_never(repeats_inputs: bool) -> None:
    config = small_paper_config(
        train_fraction=0.05, shares_inputs=False, repeats_inputs=repeats_inputs
    )
    family = family_of(config)
    num_inputs = len(family.world["train_inputs"])
    rows = torch.cat([triplets(family.training_batch(step)) for step in range(40)])
    share = sum(len(pairs(row[:, :2])) == 5 for row in rows) / len(rows)
    by_chance = math.prod(1 - k / num_inputs for k in range(5))
    assert share == pytest.approx(by_chance if repeats_inputs else 1.0, abs=0.02)


def test_a_training_batch_shows_every_task_the_same_inputs() -> None:
    family = family_of(small_paper_config())
    batch = family.training_batch(17)
    rows = triplets(batch).view(4, 32, 5, 3)
    assert (rows[..., :2] == rows[:, :1, :, :2]).all()
    assert pairs(rows[..., :2]) <= pairs(family.world["train_inputs"])
    assert follow(rows.flatten(end_dim=1), family.world["train_tasks"])
    assert torch.equal(batch.answers_BT.view(4, 32, 5), rows[..., 2])


@pytest.mark.parametrize("split", SPLITS, ids=lambda split: split.name)
def test_evaluation_rows_draw_their_own_inputs_and_every_task_equally_often(split: Split) -> None:
    family = family_of(small_paper_config())
    batch = family.evaluation_batch(split, 100, 5)
    rows = triplets(batch)
    tasks = family.world["train_tasks" if split.tasks_seen else "ood_tasks"]
    inputs = family.world["train_inputs" if split.inputs_seen else "val_inputs"]
    assert len(rows) % len(tasks) == 0
    assert len(rows) >= 100
    assert pairs(rows[..., :2]) <= pairs(inputs)
    assert all(len(pairs(row[:, :2])) == 5 for row in rows)
    assert len({tuple(row[:, :2].flatten().tolist()) for row in rows}) == len(rows)
    assert follow(rows, tasks)
    assert batch.is_scored_BT.all()


def test_a_shorter_context_asks_the_same_question() -> None:
    family = family_of(small_paper_config())
    whole, short = (triplets(family.evaluation_batch(ID_VAL, 64, n)) for n in (5, 2))
    assert torch.equal(short, whole[:, 3:])


def test_inputs_repeat_inside_a_row_only_where_the_set_is_too_small() -> None:
    family = family_of(small_paper_config(modulus=7, num_base_tasks=4, num_examples=20))
    rows = triplets(family.evaluation_batch(ID_VAL, 64, 20))
    assert all(1 < len(pairs(row[:, :2])) <= 10 for row in rows)
    assert not any((row[:-1, :2] == row[-1, :2]).all(dim=1).any() for row in rows)


def test_a_modulus_too_large_for_the_table_of_answers_is_refused() -> None:
    family = family_of(small_paper_config(modulus=251))
    assert isinstance(family, InContextFamily)
    with pytest.raises(UserError, match=r"63001 tasks x 63001 inputs.*oracle_noise to 0"):
        family.hypotheses()
