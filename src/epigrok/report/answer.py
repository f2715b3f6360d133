"""The answer in words: did it generalise, and did the monitor say so without labels?"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median

from epigrok.config.splits import in_order
from epigrok.evaluation.grokking_times import ACCURACY_THRESHOLD
from epigrok.records.status import RunStatus
from epigrok.report.courses import Course
from epigrok.wording import listed, runs_text, share_text, step_text

QUESTION = "Did it generalise, and could one tell without labels?"
RULE = (
    f"A run has generalised once its accuracy reaches {100 * ACCURACY_THRESHOLD:g} % and stays "
    "there. Steps are those of evaluations."
)
MONITOR_RULE = (
    "The monitor needs no label of unseen data: the tolerance ratio says how much noise on "
    "the weights the answers to unseen inputs withstand, over what the answers to training inputs "
    "do. It is near 1 where one rule covers both, near 0.1 where training data were memorised, and "
    "says nothing before they are fitted."
)


def goals_of(found: Sequence[Course]) -> dict[str, str]:
    """Name of each unseen split, in order -> what a model has generalised to if accurate there."""
    goal = {course.split.name: course.split.goal for course in found}
    counts = Counter(goal.values())
    return {n: goal[n] if counts[goal[n]] == 1 else f"{goal[n]} ({n})" for n in in_order(goal)}


def headline(found: Sequence[Course], statuses: Sequence[RunStatus]) -> str:
    """What happened, by accuracy: told of one run, counted of several."""
    if not found:
        return f"Nothing measured yet in {runs_text(len(statuses))}."
    goals = goals_of(found)
    if len({course.run.run_id for course in found}) == 1:
        return _sentence(f"{_so_far(found)}it {outcome(found, goals)}")
    if len(goals) > 1 and all(course.fate == "generalised" for course in found):
        # Some runs may lack some of the splits; what all of them have in common is this.
        total = len({course.run.run_id for course in found})
        return _sentence(f"{_so_far(found)}{_share_in_words(total, total)} to everything unseen")
    parts: list[str] = []
    for split, goal in goals.items():
        fates = [course.fate for course in found if course.split.name == split]
        counts = fates.count("generalised"), len(fates)
        share = share_text(*counts) if parts else _share_in_words(*counts)
        parts.append(f"{share} to {goal}")
    if num_lost := sum(course.fate == "lost" for course in found):
        parts.append(f"{num_lost:,} learnt and lost again")
    return _sentence(f"{_so_far(found)}{listed(parts)}")


def outcome(found: Sequence[Course], goals: Mapping[str, str]) -> str:
    """How one run ended on each split, by accuracy, as what follows "it"."""
    if all(course.fate == "unfitted" for course in found):
        return "has not fitted its training data"
    return _joined([_ended(course, goals[course.split.name]) for course in found])


def _joined(phrases: Sequence[str]) -> str:
    """Phrases in a row; one that begins with the verb of the phrase before leaves it out."""
    shortened = list(phrases[:1])
    for before, phrase in pairwise(phrases):
        verb = phrase.split()[0]
        is_repeated = verb in ("generalised", "answers", "announced") and before.startswith(verb)
        shortened.append(phrase.removeprefix(f"{verb} ") if is_repeated else phrase)
    return listed(shortened)


def _ended(course: Course, goal: str) -> str:
    last, best = course.last, course.best
    if course.fate == "generalised":
        return f"generalised to {goal} at step {step_text(course.generalised_step)}"
    if course.fate == "lost":
        return (
            f"lost {goal} again: {_percent(best.accuracy)} right at step "
            f"{step_text(best.step)}, {_percent(last.accuracy)} at step {step_text(last.step)}"
        )
    if course.fate == "memorised":
        return f"memorised its training data: {_percent(last.accuracy)} of {goal} are right"
    return f"answers {_percent(last.accuracy)} of {goal} right"


def monitor_said(found: Sequence[Course]) -> str:
    """What the monitor announced, beside accuracy; empty where nobody watched."""
    watched = [course for course in found if course.is_watched]
    if not watched:
        return ""
    goals = goals_of(found)
    num_runs = len({course.run.run_id for course in watched})
    if num_runs == 1:
        return f"The monitor, which sees no labels, {announcement(watched, goals)}."
    text = f"The monitor, which sees no labels, {_announced_of_many(watched)}."
    if len({course.split.name for course in watched}) == 1:
        return text
    # The headline counts runs.
    return f"{text} It judges each split by itself: {len(watched):,} in {runs_text(num_runs)}."


def announcement(watched: Sequence[Course], goals: Mapping[str, str]) -> str:
    """What the monitor said of one run, as what follows "the monitor"."""
    if len(watched) == 1:
        return _said(watched[0], None)
    return _joined([_said(course, goals[course.split.name]) for course in watched])


def _said(course: Course, goal: str | None) -> str:
    """The goal is None where only one is spoken of."""
    announced, last = course.announced, course.last
    if announced is None:
        ratio = next(
            (look.ratio for look in reversed(course.looks) if look.ratio is not None), None
        )
        end = "" if ratio is None else f" (tolerance ratio {ratio:.2f})"
        verdict = f"calls {goal or 'it'} {last.state}{end}"
        return f"missed {goal or 'it'} and {verdict}" if course.fate == "generalised" else verdict
    step = step_text(announced.step)
    if course.fate == "generalised":
        text = f"said so at step {step}" if goal is None else f"announced {goal} at step {step}"
    else:
        accuracy = _percent(announced.accuracy)
        text = f"announced {goal or 'it'} at step {step}, with {accuracy} right"
    if course.seen_lost is not None:
        text += f", and called {'them' if goal else 'it'} lost at step "
        text += step_text(course.seen_lost.step)
    return text


def _announced_of_many(watched: Sequence[Course]) -> str:
    right = [course for course in watched if course.fate == "generalised"]
    others = [course for course in watched if course.fate not in ("generalised", "lost")]
    lost = [course for course in watched if course.fate == "lost"]
    is_one = len({course.split.name for course in watched}) == 1
    these = "these" if is_one else "the splits that generalised"
    those = "those" if is_one or right else "the splits"
    parts = []
    if right:
        number = sum(course.announced is not None for course in right)
        share = f"all {number:,}" if number == len(right) > 1 else share_text(number, len(right))
        parts.append(f"announced {share} of {these}{_lags(right)}")
    if others:
        early = [course.announced.accuracy for course in others if course.announced]
        text = f"{share_text(len(early), len(others))} of {those} that did not get there"
        text += f" (at most {_percent(max(early))} right when announced)" if early else ""
        parts.append(text if right else f"announced {text}")
    if lost:
        number = sum(course.seen_lost is not None for course in lost)
        parts.append(f"saw {share_text(number, len(lost))} lost again")
    return listed(parts)


def _lags(right: Sequence[Course]) -> str:
    lags = [course.lag for course in right if course.lag is not None]
    if not lags:
        return ""
    if max(lags) <= 0:
        return ", no later than accuracy"
    worst, typical = max(lags), median(lags)
    words = f", at the median {step_text(typical)}" if typical < worst else ""
    return f", at most {step_text(worst)} steps after accuracy{words}"


def caption(course: Course, goal: str) -> str:
    """What happened to one run on one split, and what the monitor said of it."""
    text = f"It {outcome([course], {course.split.name: goal})}"
    if course.generalised_step is not None and course.fitted_step is not None:
        delay = course.generalised_step - course.fitted_step
        text += f", {step_text(delay)} steps after it had fitted its training data"
    said = f" The monitor {_said(course, None)}, without labels." if course.is_watched else ""
    return f"{text}.{said}"


def _so_far(found: Sequence[Course]) -> str:
    unfinished = {c.run.run_id: c.run for c in found if c.run.state != "done"}
    if not unfinished:
        return ""
    total = len({course.run.run_id for course in found})
    if total == 1:
        (run,) = unfinished.values()
        return f"at step {step_text(run.step)} of {step_text(run.num_steps)}, "
    return f"so far, with {total - len(unfinished):,} of {runs_text(total)} done, "


def _share_in_words(number: int, total: int) -> str:
    if number == total > 1:
        return "both runs generalised" if total == 2 else f"all {runs_text(total)} generalised"
    if number == 0:
        return f"none of {runs_text(total)} generalised"
    return f"{number:,} of {runs_text(total)} generalised"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
