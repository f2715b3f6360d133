"""Worlds, batches and evaluation rows of the three families."""

import dataclasses
import math
from itertools import product

import pytest
import torch

from epigrok.config import ClassicTask, OneParameterTask, RunConfig, TwoParameterTask, preset
from epigrok.tasks import (
    Batch,
    TaskFamily,
    build_family,
    hypotheses,
    sample_world,
    with_context_noise,
)


def family_of(config: RunConfig) -> tuple[TaskFamily, dict[str, torch.Tensor]]:
    world = sample_world(config.task, config.task_seed)
    return build_family(config, world), world


def small_paper_config(**task: object) -> RunConfig:
    task_config = TwoParameterTask(**{"num_base_tasks": 8, "num_examples": 5} | task)
    return dataclasses.replace(preset("icl-paper"), task=task_config, batch_size=128)


def pairs(rows: torch.Tensor) -> set[tuple[int, ...]]:
    return {tuple(row) for row in rows.reshape(-1, rows.shape[-1]).tolist()}


def triplets(batch: Batch) -> torch.Tensor:
    return batch.tokens_BL.unflatten(1, (-1, 3))


def hidden_task(rows: torch.Tensor, modulus: int) -> list[tuple[int, int]]:
    return [
        (a, b)
        for a, b in product(range(modulus), repeat=2)
        if ((a * rows[:, 0] + b * rows[:, 1] - rows[:, 2]) % modulus == 0).all()
    ]


@pytest.mark.parametrize("construction", ["parallelogram", "random"])
def test_seen_and_unseen_tasks_and_inputs_do_not_meet(construction: str) -> None:
    for seed in range(10):
        config = TwoParameterTask(num_base_tasks=64, construction=construction)  # type: ignore[arg-type]
        world = sample_world(config, seed)
        train, ood = pairs(world["train_tasks"]), pairs(world["ood_tasks"])
        assert (len(train), len(ood)) == (256, 256)
        assert not train & ood
        seen, unseen = pairs(world["train_inputs"]), pairs(world["val_inputs"])
        assert (len(seen), len(unseen)) == (673, 168)
        assert not seen & unseen


@pytest.mark.parametrize("construction", ["parallelogram", "random"])
def test_tasks_without_zero_coefficients_can_be_asked_for(construction: str) -> None:
    config = TwoParameterTask(num_base_tasks=64, construction=construction, allows_zero=False)  # type: ignore[arg-type]
    world = sample_world(config, 0)
    assert len(world["train_tasks"]) == len(world["ood_tasks"]) == 256
    assert world["train_tasks"].min() >= 1
    assert world["ood_tasks"].min() >= 1
    considered = hypotheses(config, world)
    assert considered is not None
    assert considered.answers_AN.shape == (28 * 28, 29 * 29)
    assert considered.is_trained_A.sum() == 256


def test_fewer_unseen_tasks_than_asked_for_means_all_that_remain() -> None:
    world = sample_world(TwoParameterTask(modulus=13, num_base_tasks=20), 0)
    assert len(pairs(world["ood_tasks"])) == 169 - 80


def test_worlds_are_functions_of_the_task_seed() -> None:
    for task in (TwoParameterTask(), OneParameterTask(), ClassicTask()):
        first, again, other = (sample_world(task, seed) for seed in (4, 4, 5))
        assert all(torch.equal(first[name], again[name]) for name in first)
        assert any(not torch.equal(first[name], other[name]) for name in first)


@pytest.mark.parametrize("repeats_inputs", [True, False])
def test_training_rows_repeat_inputs_by_chance_or_never(repeats_inputs: bool) -> None:
    config = small_paper_config(
        train_fraction=0.05, shares_inputs=False, repeats_inputs=repeats_inputs
    )
    family, world = family_of(config)
    num_inputs = len(world["train_inputs"])
    rows = torch.cat([triplets(family.training_batch(step)) for step in range(40)])
    share = sum(len(pairs(row[:, :2])) == 5 for row in rows) / len(rows)
    by_chance = math.prod(1 - k / num_inputs for k in range(5))
    assert share == pytest.approx(by_chance if repeats_inputs else 1.0, abs=0.02)


def test_a_training_batch_shows_every_task_the_same_inputs() -> None:
    family, world = family_of(small_paper_config())
    batch = family.training_batch(17)
    rows = triplets(batch).view(4, 32, 5, 3)
    assert (rows[..., :2] == rows[:, :1, :, :2]).all()
    assert pairs(rows[..., :2]) <= pairs(world["train_inputs"])
    for sequence in rows:
        found = [set(hidden_task(row, 29)) for row in sequence]
        assert all(
            tuple(task) in candidates
            for task, candidates in zip(world["train_tasks"].tolist(), found)
        )
    assert torch.equal(batch.answers_BT.view(4, 32, 5), rows[..., 2])


@pytest.mark.parametrize("name", ["classic", "icl-tiny", "icl-medium"])
def test_batch_k_is_a_function_of_the_run_seed_and_k(name: str) -> None:
    config = preset(name)
    family, world = family_of(config)
    later = family.training_batch(9).tokens_BL
    family.training_batch(3)
    assert torch.equal(later, family.training_batch(9).tokens_BL)
    assert torch.equal(later, family.training_batch(torch.tensor(9)).tokens_BL)
    assert not torch.equal(later, family.training_batch(10).tokens_BL)
    reseeded = build_family(dataclasses.replace(config, run_seed=1), world)
    assert not torch.equal(later, reseeded.training_batch(9).tokens_BL)
    same_set = reseeded.evaluation_batch("id_val", 64, config.task.num_examples).tokens_BL
    assert torch.equal(
        same_set, family.evaluation_batch("id_val", 64, config.task.num_examples).tokens_BL
    )


@pytest.mark.parametrize("split", ["id_train", "id_val", "ood_train", "ood_val"])
def test_evaluation_rows_draw_their_own_inputs_and_every_task_equally_often(split: str) -> None:
    family, world = family_of(small_paper_config())
    batch = family.evaluation_batch(split, 100, 5)
    rows = triplets(batch)
    tasks = world["train_tasks" if split.startswith("id") else "ood_tasks"]
    assert len(rows) % len(tasks) == 0
    assert len(rows) >= 100
    assert pairs(rows[..., :2]) <= pairs(world[f"{split.split('_')[1]}_inputs"])
    assert all(len(pairs(row[:, :2])) == 5 for row in rows)
    assert len({tuple(row[:, :2].flatten().tolist()) for row in rows}) == len(rows)
    for index, row in enumerate(rows[:40]):
        assert tuple(tasks[index % len(tasks)].tolist()) in hidden_task(row, 29)
    assert batch.is_scored_BT.all()


def test_inputs_repeat_inside_a_row_only_where_the_set_is_too_small() -> None:
    family, _ = family_of(small_paper_config(modulus=7, num_base_tasks=4, num_examples=20))
    rows = triplets(family.evaluation_batch("id_val", 64, 20))
    assert all(len(pairs(row[:, :2])) <= 10 for row in rows)
    assert not any((row[:-1, :2] == row[-1, :2]).all(dim=1).any() for row in rows)


def test_the_identity_is_never_an_unseen_task() -> None:
    for seed in range(20):
        world = sample_world(OneParameterTask(), seed)
        seen, unseen = set(world["train_tasks"].tolist()), set(world["ood_tasks"].tolist())
        assert 1 in seen
        assert seen | unseen == set(range(1, 31))
        assert not seen & unseen


def test_held_out_cells_appear_only_as_the_last_question() -> None:
    family, world = family_of(preset("icl-tiny"))
    trained = {
        (task, x)
        for task, inputs in zip(world["train_tasks"].tolist(), world["train_inputs"].tolist())
        for x in inputs
    }

    def cells(batch: Batch) -> list[list[tuple[int, int]]]:
        rows = batch.tokens_BL.unflatten(1, (-1, 2))
        inverse = [0] + [pow(x, -1, 31) for x in range(1, 31)]
        return [[((z * inverse[x]) % 31, x) for x, z in row] for row in rows.tolist()]

    for step in range(5):
        for row in cells(family.training_batch(step)):
            assert len({task for task, _ in row}) == 1
            assert len(set(row)) == 6
            assert set(row) <= trained
    held_out = family.evaluation_batch("id_val", 256, 6)
    for row in cells(held_out):
        assert set(row[:-1]) <= trained
        assert row[-1] not in trained
        assert row[-1][0] in world["train_tasks"].tolist()
    assert held_out.is_scored_BT[:, -1].all()
    assert not held_out.is_scored_BT[:, :-1].any()
    shorter = family.evaluation_batch("id_val", 256, 3)
    assert torch.equal(shorter.tokens_BL, held_out.tokens_BL[:, 6:])
    unseen = {row[0][0] for row in cells(family.evaluation_batch("ood_val", 64, 6))}
    assert unseen == set(world["ood_tasks"].tolist())


@pytest.mark.parametrize(
    ("operation", "result"),
    [
        ("add", lambda a, b, p: (a + b) % p),
        ("subtract", lambda a, b, p: (a - b) % p),
        ("multiply", lambda a, b, p: (a * b) % p),
        ("divide", lambda a, b, p: (a * pow(b, -1, p)) % p),
        ("quadratic", lambda a, b, p: (a * a + a * b + b * b) % p),
    ],
)
def test_classic_tables_are_complete_and_right(operation: str, result: object) -> None:
    config = ClassicTask(modulus=11, operation=operation)  # type: ignore[arg-type]
    world = sample_world(config, 0)
    train, held_out = pairs(world["id_train"]), pairs(world["id_val"])
    assert not train & held_out
    divisors = range(1 if operation == "divide" else 0, 11)
    table = {(a, b, result(a, b, 11)) for a in range(11) for b in divisors}  # type: ignore[operator]
    assert train | held_out == table


def test_random_labels_keep_the_table_but_not_the_rule() -> None:
    shuffled = sample_world(ClassicTask(modulus=31, random_labels=True), 0)
    cells = torch.cat([shuffled["id_train"], shuffled["id_val"]])
    assert len(pairs(cells[:, :2])) == 31 * 31
    assert ((cells[:, 0] + cells[:, 1]) % 31 == cells[:, 2]).float().mean() < 0.1
    answers = sample_world(OneParameterTask(random_labels=True), 0)["answers"]
    assert answers.min() >= 1
    assert len(answers.unique()) == 30


def test_context_noise_leaves_inputs_query_and_answers_clean() -> None:
    family, _ = family_of(small_paper_config())
    batch = family.evaluation_batch("ood_val", 4096, 5)
    clean = triplets(batch)
    noisy = {
        rho: triplets(with_context_noise(batch, rho, 29, task_seed=0)) for rho in (0.0, 0.3, 0.6, 1)
    }
    assert torch.equal(noisy[0.0], clean)
    for rho, rows in noisy.items():
        assert torch.equal(rows[..., :2], clean[..., :2])
        assert torch.equal(rows[:, -1], clean[:, -1])
        changed = (rows != clean)[:, :-1, 2].double()
        # A uniform token equals the true one with probability 1/29.
        expected = rho * 28 / 29
        assert abs(changed.mean() - expected) < 4 * (0.25 / changed.numel()) ** 0.5
    low, high = noisy[0.3] != clean, noisy[0.6] != clean
    assert (high | ~low).all()
    assert torch.equal(noisy[0.3][low], noisy[0.6][low])
