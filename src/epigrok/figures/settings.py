"""Choose the settings that a figure shows, one per column, and describe the choice."""

from collections.abc import Collection, Iterable, Sequence

from epigrok.errors import UserError
from epigrok.figures.style import literal
from epigrok.tables.groups import Setting, num_settings, require_evaluated
from epigrok.tables.store import SweepStore
from epigrok.wording import listed

_SEEDED = {"task_seed": "tasks and inputs", "run_seed": "initial weights and batches"}
_MANY_RUNS = 20
"""From here on a quantile of 2.5 % lies clearly inside the range."""
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
    pooled = [setting for setting in shown if setting.num_runs > 1]
    if not pooled:
        return ""
    seeds = {name for setting in pooled for name in setting.varying_seeds}
    text = f" Medians over runs that differ in {seeds_text(seeds)}, bands hold 95 % of them"
    return f"{text}{band_note(max(setting.num_runs for setting in pooled))}."


def seeds_text(varying: Collection[str]) -> str:
    """What differs between runs of one setting, in words."""
    found = [what for name, what in _SEEDED.items() if name in varying]
    return listed(found) if found else "nothing"


def band_note(num_runs: int) -> str:
    """What a band of quantiles is worth for so few runs; empty for many."""
    return "" if num_runs >= _MANY_RUNS else f", which for {num_runs} runs is nearly their range"


def choice_note(store: SweepStore, shown: Sequence[Setting]) -> str:
    """A sentence on which settings are shown, if some are left out."""
    number = num_settings(store)
    if number <= MAX_SETTINGS:
        return ""
    return (
        f" Shown are {len(shown)} of {number} settings: the most accurate of each preset on its "
        f"hardest split, for at most {MAX_SETTINGS} presets."
    )
