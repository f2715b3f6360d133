"""Choose the settings that a figure shows, one per column, and describe the choice."""

from collections.abc import Iterable, Sequence

from epigrok.errors import UserError
from epigrok.figures.style import literal
from epigrok.tables.groups import Setting, num_settings, require_evaluated
from epigrok.tables.store import SweepStore

MAX_SETTINGS = 4
"""Columns of panels that a page has room for."""


def shown_settings(store: SweepStore) -> list[Setting]:
    """The settings to show.

    All of them, if there are at most `MAX_SETTINGS`. Otherwise the one of each preset that is most
    accurate on its hardest split, for the first `MAX_SETTINGS` presets.
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
    """The settings to show that track a posterior with epistemic uncertainty."""
    settings = [setting for setting in shown_settings(store) if setting.posteriors]
    if not settings:
        raise UserError(
            f"no run in {store.path} tracks epistemic uncertainty; train with a posterior, as in "
            "`epigrok train PRESET --evaluation.posteriors point laplace`"
        )
    return settings


def setting_label(setting: Setting) -> str:
    """The title of a column: preset, fields and number of runs, each on its own line."""
    return literal("\n".join([setting.preset, *setting.values, setting.runs]))


def pooling_sentence(shown: Iterable[Setting]) -> str:
    """A sentence on medians and bands, if the figure pools runs."""
    pools = any(setting.num_runs > 1 for setting in shown)
    return " Medians over runs, bands hold 95 % of them." if pools else ""


def choice_note(store: SweepStore, shown: Sequence[Setting]) -> str:
    """A sentence on which settings are shown, if some are left out."""
    number = num_settings(store)
    if number <= MAX_SETTINGS:
        return ""
    return (
        f" Shown are {len(shown)} of {number} settings: the most accurate of each preset on its "
        f"hardest split, for at most {MAX_SETTINGS} presets."
    )
