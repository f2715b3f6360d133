"""Which settings a figure of one column per setting shows, and what its caption says of that."""

from collections.abc import Iterable, Sequence

from epigrok.errors import UserError
from epigrok.figures.style import literal
from epigrok.tables.groups import Setting, num_settings, require_evaluated
from epigrok.tables.store import SweepStore

MAX_SETTINGS = 4
"""Columns of panels that a page has room for."""


def shown_settings(store: SweepStore) -> list[Setting]:
    """The settings to show.

    All of them where there are at most `MAX_SETTINGS`; else, of each preset the one that is most
    accurate on its hardest split, and of those the first.
    """
    settings = require_evaluated(store)
    if len(settings) > MAX_SETTINGS:
        best: dict[str, Setting] = {}
        for setting in settings:
            if setting.accuracy > best.setdefault(setting.preset, setting).accuracy:
                best[setting.preset] = setting
        settings = list(best.values())
    return settings[:MAX_SETTINGS]


def settings_with_uncertainty(store: SweepStore) -> list[Setting]:
    """The settings to show, if they track a posterior that is sampled."""
    settings = [setting for setting in shown_settings(store) if setting.posteriors]
    if not settings:
        raise UserError(
            f"no run in {store.path} tracks epistemic uncertainty; train with a posterior, as in "
            "`epigrok train PRESET --evaluation.posteriors point laplace`"
        )
    return settings


def setting_label(setting: Setting) -> str:
    """The head of a column: its name, and how many runs are behind it, on a line each."""
    return literal("\n".join([setting.preset, *setting.values, setting.runs]))


def pooling_sentence(shown: Iterable[Setting]) -> str:
    """How runs were put together, if they were."""
    pools = any(setting.num_runs > 1 for setting in shown)
    return " Medians over runs, bands hold 95 % of them." if pools else ""


def choice_note(store: SweepStore, shown: Sequence[Setting]) -> str:
    """A sentence on what is left out, if anything is."""
    number = num_settings(store)
    if number <= MAX_SETTINGS:
        return ""
    return (
        f" Shown are {len(shown)} of {number} settings: of each preset, at most {MAX_SETTINGS}, "
        "the one that is most accurate on its hardest split."
    )
