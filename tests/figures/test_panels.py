"""Columns of panels, legends and the sentence on splits."""

from matplotlib.figure import Figure

from epigrok.figures.panels import (
    add_legend,
    label_nats,
    split_handles,
    split_look,
    splits_sentence,
)
from epigrok.figures.style import COLUMN_WIDTH, TEXT_WIDTH
from epigrok.tables import SweepStore


def test_splits_come_in_their_own_order_and_foreign_ones_last() -> None:
    handles = split_handles({"mine", "ood_val", "id_train"})
    assert [handle.get_label() for handle in handles] == ["id_train", "ood_val", "mine"]


def test_the_sentence_explains_the_splits_that_were_drawn(store: SweepStore) -> None:
    sentence = "Splits: id_val, held-out inputs of training tasks; ood_val, unseen tasks."
    assert splits_sentence({"ood_val", "id_val"}, store) == sentence


def test_a_long_curve_has_a_marker_on_every_eighth_part() -> None:
    assert split_look("id_val", 80)["markevery"] == 10
    assert split_look("id_val", 3)["markevery"] == 1


def test_a_narrow_figure_has_two_entries_in_a_row_of_its_legend() -> None:
    for width, per_row in ((COLUMN_WIDTH, 2), (TEXT_WIDTH, 4)):
        figure = Figure(figsize=(width, 2.0), layout="constrained")
        add_legend(figure, split_handles({"id_train", "id_val", "ood_train", "ood_val"}))
        assert figure.legends[0]._ncols == per_row


def test_an_axis_in_nats_starts_at_zero_and_holds_its_curve() -> None:
    axes = Figure().subplots()
    axes.plot([0, 1], [0.5, 2.0])
    label_nats(axes, "EU", "laplace")
    assert axes.get_ylabel() == "EU (nats)\nlaplace"
    low, high = axes.get_ylim()
    assert low == 0.0
    assert high > 2.0
