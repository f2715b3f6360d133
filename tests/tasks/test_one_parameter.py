"""The family that groks on a CPU: z = a·x mod p with held-out cells."""

import torch
from small_tasks import family_of

from epigrok.config import OneParameterTask, preset
from epigrok.config.splits import ID_VAL, OOD_VAL
from epigrok.tasks import Batch, sample_world


def cells(batch: Batch) -> list[list[tuple[int, int]]]:
    """(task, input) of every example mod 31."""
    rows = batch.tokens_BL.unflatten(1, (-1, 2))
    inverse = [0] + [pow(x, -1, 31) for x in range(1, 31)]
    return [[((z * inverse[x]) % 31, x) for x, z in row] for row in rows.tolist()]


def test_the_identity_is_never_an_unseen_task() -> None:
    for seed in range(20):
        world = sample_world(OneParameterTask(), seed)
        seen, unseen = set(world["train_tasks"].tolist()), set(world["ood_tasks"].tolist())
        assert 1 in seen
        assert seen | unseen == set(range(1, 31))
        assert not seen & unseen


def test_held_out_cells_appear_only_as_the_last_question() -> None:
    family = family_of(preset("icl-tiny"))
    train_tasks = family.world["train_tasks"].tolist()
    trained = {
        (task, x)
        for task, inputs in zip(train_tasks, family.world["train_inputs"].tolist(), strict=True)
        for x in inputs
    }
    for step in range(5):
        for row in cells(family.training_batch(step)):
            assert len({task for task, _ in row}) == 1
            assert len(set(row)) == 6
            assert set(row) <= trained
    held_out = family.evaluation_batch(ID_VAL, 256, 6)
    for row in cells(held_out):
        assert set(row[:-1]) <= trained
        assert row[-1] not in trained
        assert row[-1][0] in train_tasks
    assert held_out.is_scored_BT[:, -1].all()
    assert not held_out.is_scored_BT[:, :-1].any()
    shorter = family.evaluation_batch(ID_VAL, 256, 3)
    assert torch.equal(shorter.tokens_BL, held_out.tokens_BL[:, 6:])


def test_every_unseen_task_is_asked_about_at_every_length() -> None:
    family = family_of(preset("icl-tiny"))
    batch = family.evaluation_batch(OOD_VAL, 64, 6)
    assert {row[0][0] for row in cells(batch)} == set(family.world["ood_tasks"].tolist())
    assert batch.is_scored_BT.all()


def test_random_labels_are_answers_without_a_rule() -> None:
    answers = sample_world(OneParameterTask(random_labels=True), 0)["answers"]
    assert answers.min() >= 1
    assert len(answers.unique()) == 30
    residues = torch.arange(31)
    is_product = answers == residues[:, None] * residues % 31
    assert is_product[1:, 1:].float().mean() < 0.1
