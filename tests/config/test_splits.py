"""Splits: what they are called, how they are ordered, which are hardest."""

import pytest

from epigrok.config.splits import (
    ID_TRAIN,
    ID_VAL,
    OOD_TRAIN,
    OOD_VAL,
    SPLITS,
    Split,
    in_order,
    of_hardest,
)


def test_a_split_says_what_training_showed_of_it() -> None:
    seen = {split.name: (split.tasks_seen, split.inputs_seen) for split in SPLITS}
    assert seen == {
        "id_train": (True, True),
        "id_val": (True, False),
        "ood_train": (False, True),
        "ood_val": (False, False),
    }
    assert [split for split in SPLITS if split.is_training] == [ID_TRAIN]
    assert (ID_VAL.goal, OOD_TRAIN.goal, OOD_VAL.goal) == (
        "unseen inputs",
        "unseen tasks",
        "unseen tasks",
    )


def test_names_are_put_in_order_once_each_with_unknown_ones_last() -> None:
    assert in_order(["mine", "ood_val", "id_train", "yours", "ood_val", "id_val"]) == [
        "id_train",
        "id_val",
        "ood_val",
        "mine",
        "yours",
    ]
    assert in_order([]) == []


def test_right_answers_on_unseen_inputs_show_generalisation() -> None:
    shown = {split.name: split.shows_generalisation for split in SPLITS}
    assert shown == {"id_train": False, "id_val": True, "ood_train": False, "ood_val": True}


@pytest.mark.parametrize(
    ("names", "hardest"),
    [
        (["ood_val", "id_val", "ood_train", "id_train"], "ood_val"),
        (["id_val", "ood_train", "id_train"], "id_val"),
        (["of a plugin", "ood_val"], "of a plugin"),
        (["of a plugin, seen", "ood_val"], "ood_val"),
        (["ood_train", "id_train"], None),
        ([], None),
    ],
)
def test_the_hardest_split_is_the_last_that_shows_generalisation(
    names: list[str], hardest: str | None
) -> None:
    own = (Split("of a plugin", True, False, ""), Split("of a plugin, seen", True, True, ""))
    assert of_hardest({name: name for name in names}, (*own, *SPLITS)) == hardest
