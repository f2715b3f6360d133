"""The answer to the page's question: did it grok, and could one tell without labels?"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from epigrok.config.splits import Split, in_order
from epigrok.evaluation.grokking_times import ACCURACY_THRESHOLD, COLLAPSE_SHARE
from epigrok.records.status import RunStatus
from epigrok.report.announced import announced_in_short, announced_on
from epigrok.report.run_events import Median, RunEvents, grouped
from epigrok.tables.announcements import Announcement
from epigrok.wording import (
    accuracy_text,
    listed,
    runs_text,
    share_text,
    step_text,
    value_text,
)

QUESTION = "Did it grok, and could one tell without labels?"

RULES = (
    f"A run has generalised once its accuracy reaches {100 * ACCURACY_THRESHOLD:g} % and stays "
    "there. The monitor compares how much noise on the weights the answers to unseen and to "
    "training inputs withstand. Epistemic uncertainty (EU) has collapsed once, with the training "
    f"set fitted and past the peak, it stays under {100 * COLLAPSE_SHARE:g} % of that peak. "
    "Neither needs labels of unseen data. Steps are those of evaluations; several runs are summed "
    "up by their median."
)


@dataclass(frozen=True)
class Signal:
    """What one posterior's uncertainty did, in words and on a line from step 0 to the last."""

    posterior: str
    text: str
    band: tuple[float, float] | None
    """The steps at which the training set was fitted but the split not yet generalised: start and
    width in per cent of the line."""
    marks: dict[str, float]
    """Event -> its place in per cent of the line."""


@dataclass(frozen=True)
class Finding:
    """One preset on one unseen split."""

    preset: str
    goal: str
    text: str
    last_step: str
    signals: list[Signal]
    announced: str = ""
    """What the monitor said."""


@dataclass(frozen=True)
class Answer:
    """The opening of the page."""

    headline: str
    announced: str
    """What the monitor said; empty where no run was watched."""
    signals: str
    findings: list[Finding]


def answer(
    found: Sequence[RunEvents],
    statuses: Sequence[RunStatus],
    announced: Sequence[Announcement] = (),
) -> Answer:
    """The headline, what monitor and uncertainties said, a finding per preset and unseen split."""
    goals = _goals(split for outcome in found for split in outcome.run.splits)
    unseen = [outcome for outcome in found if outcome.times.split in goals]
    if not unseen:
        return Answer(f"No uncertainty measured yet in {runs_text(len(statuses))}.", "", "", [])
    cases: dict[tuple[str, str], dict[str, list[RunEvents]]] = {}
    for (preset, split, posterior), outcomes in grouped(unseen, ["preset"]).items():
        cases.setdefault((preset, split), {})[posterior] = outcomes
    findings = [
        replace(
            _finding(preset, split, goals[split], group),
            announced=announced_on(split, (o for each in group.values() for o in each), announced),
        )
        for (preset, split), group in cases.items()
    ]
    return Answer(
        headline=_headline(unseen, goals),
        announced=announced_in_short(unseen, goals, announced),
        signals=_signals_in_short(unseen),
        findings=findings,
    )


def _goals(splits: Iterable[Split]) -> dict[str, str]:
    """Name of each split that shows generalisation, in order -> what accuracy there reaches."""
    unseen = {split.name: split.goal for split in splits if split.shows_generalisation}
    counts = Counter(unseen.values())
    return {
        name: unseen[name] if counts[unseen[name]] == 1 else f"{unseen[name]} ({name})"
        for name in in_order(unseen)
    }


def _headline(unseen: Sequence[RunEvents], goals: dict[str, str]) -> str:
    parts: list[str] = []
    for split, goal in goals.items():
        has_generalised = {
            outcome.run.run_id: outcome.times.generalised_step is not None
            for outcome in unseen
            if outcome.times.split == split
        }
        if has_generalised:
            total = len(has_generalised)
            whole = f"{total:,}" if parts else f"{runs_text(total)} generalised"
            parts.append(f"{sum(has_generalised.values()):,} of {whole} to {goal}")
    return f"{listed(parts)}."


def _signals_in_short(unseen: Sequence[RunEvents]) -> str:
    """Per posterior, in how many transitions the collapse came no later than accuracy."""
    counts: dict[str, list[bool]] = {}
    for outcome in unseen:
        if outcome.times.generalised_step is not None:
            lead = outcome.times.lead_of_collapse
            counts.setdefault(outcome.times.posterior, []).append(lead is not None and lead >= 0)
    if not counts:
        return ""
    best_first = sorted(
        counts.items(), key=lambda item: (-sum(item[1]) / len(item[1]), -len(item[1]))
    )
    shares = [f"{name} in {share_text(sum(said), len(said))}" for name, said in best_first]
    return f"Uncertainty collapsed no later than accuracy arrived: {listed(shares)} transitions."


def _finding(
    preset: str, split: str, goal: str, of_posterior: dict[str, list[RunEvents]]
) -> Finding:
    everyone = [outcome for group in of_posterior.values() for outcome in group]
    one_per_run = {outcome.run.run_id: outcome for outcome in everyone}
    last_step = max((o.run.num_steps for o in everyone), default=0)
    return Finding(
        preset=preset,
        goal=goal,
        text=_what_accuracy_did(split, list(one_per_run.values())),
        last_step=step_text(last_step),
        signals=[_signal(name, group, last_step) for name, group in of_posterior.items()],
    )


def _what_accuracy_did(split: str, outcomes: Sequence[RunEvents]) -> str:
    transitions = [o.times for o in outcomes if o.times.generalised_step is not None]
    share = f"{len(transitions):,} of {runs_text(len(outcomes))} generalised"
    if not transitions:
        best = max((o.run.accuracy.get(split, 0.0) for o in outcomes), default=0.0)
        return f"{share}; the best final accuracy is {accuracy_text(best)}."
    step = Median.of(times.generalised_step for times in transitions)
    text = f"{share}, at step {step_text(step.value)}"
    delay = Median.of(times.delay for times in transitions)
    if delay.value is not None:
        text += f", {step_text(delay.value)} steps after the training set was fitted"
    return f"{text}."


def _signal(posterior: str, outcomes: Sequence[RunEvents], last_step: int) -> Signal:
    every = [outcome.times for outcome in outcomes]
    names = ("fitted", "generalised", "peak", "collapsed")
    step_of = {name: Median.of(getattr(t, f"{name}_step") for t in every) for name in names}
    height = Median.of(times.peak_epistemic for times in every)
    text = f"peak {value_text(height.value)} nats at {step_text(step_of['peak'].value)}; "
    text += _what_collapse_said(outcomes, step_of["collapsed"])
    marks = {
        name: round(100.0 * found.value / max(last_step, 1), 2)
        for name, found in step_of.items()
        if found.value is not None
    }
    start = marks.pop("fitted", None)
    width = None if start is None else round(marks.get("generalised", 100.0) - start, 2)
    band = None if start is None or width is None or width < 0.0 else (start, width)
    return Signal(posterior, text, band, marks)


def _what_collapse_said(outcomes: Sequence[RunEvents], collapsed: Median) -> str:
    if collapsed.value is None:
        return "no collapse"
    lead = Median.of(outcome.times.lead_of_collapse for outcome in outcomes).value
    text = f"collapse at {step_text(collapsed.value)}"
    if collapsed.num_runs < len(outcomes):
        text += f" in {share_text(collapsed.num_runs, len(outcomes))}"
    if lead is not None:
        distance = f"{step_text(abs(lead))} {'before' if lead > 0 else 'after'} accuracy"
        text += f", {distance}" if lead else ", together with accuracy"
    early = sum(
        o.times.collapsed_step is not None and o.times.generalised_step is None for o in outcomes
    )
    return f"{text}; also in {early} that did not generalise" if early else text
