"""What the monitor announced without labels, beside what accuracy did."""

from collections.abc import Iterable, Mapping, Sequence

from epigrok.report.run_events import Median, RunEvents
from epigrok.tables.announcements import Announcement
from epigrok.wording import runs_text, share_text, step_text


def announced_in_short(
    unseen: Sequence[RunEvents], goals: Mapping[str, str], announced: Sequence[Announcement]
) -> str:
    """A sentence on every unseen split that a monitor watched."""
    found = {split: announced_on(split, unseen, announced) for split in goals}
    return " ".join(
        f"The monitor, which sees no labels, announced generalisation to {goals[split]} {text}."
        for split, text in found.items()
        if text
    )


def announced_on(
    split: str, outcomes: Iterable[RunEvents], announced: Sequence[Announcement]
) -> str:
    """In how many runs a split was announced, when, how long after accuracy, and where wrongly."""
    true_step = {o.run.run_id: o.times.generalised_step for o in outcomes if o.times.split == split}
    judged = [said for said in announced if said.split == split and said.run_id in true_step]
    right = [said for said in judged if true_step[said.run_id] is not None]
    wrong = [said for said in judged if true_step[said.run_id] is None]
    parts = []
    if right:
        parts.append(f"in {_share(right)} that got there{_when(right, true_step)}")
    if wrong:
        parts.append(f"in {_share(wrong)} that did not get there")
    text = ", and ".join(parts)
    num_lost = sum(said.last_state == "lost" for said in judged)
    return f"{text}; it saw {runs_text(num_lost)} lose it again" if num_lost else text


def _share(judged: Sequence[Announcement]) -> str:
    number = sum(said.generalised_step is not None for said in judged)
    return share_text(number, len(judged))


def _when(right: Sequence[Announcement], true_step: Mapping[str, int | None]) -> str:
    step = Median.of(said.generalised_step for said in right).value
    if step is None:
        return ""
    lags = ((said.generalised_step, true_step[said.run_id]) for said in right)
    lag = Median.of(late - true for late, true in lags if late is not None and true is not None)
    if not lag.value:
        return f", at step {step_text(step)}, together with accuracy"
    side = "after" if lag.value > 0 else "before"
    return f", at step {step_text(step)}, {step_text(abs(lag.value))} steps {side} accuracy"
