"""Claims on the course of training: when uncertainty peaks and falls, and what that tells."""

from collections.abc import Callable

from benchmarks.verdicts.claims import FEWEST_RUNS, Claim, Finding, decided, share_of_runs
from benchmarks.verdicts.evidence import HIGH, Course, Method, middle

TOGETHER = 0.1
"""Events as close as this share of a run's steps coincide, and a fall as short as this is sharp."""


def _share(method: Method, holds: Callable[[Course], bool], what: str) -> Finding:
    courses = method.courses
    return share_of_runs(sum(map(holds, courses)), len(courses), what)


def _with_median(found: Finding, leads: list[int]) -> Finding:
    """The finding, with the steps from an event to generalisation."""
    if not leads:
        return found
    return Finding(found.verdict, f"{found.number}; median lead {middle(leads):g} steps")


def collapse(method: Method) -> Finding:
    return _share(method, lambda course: course.fell, "end below 1/4 of their peak")


def sharp(method: Method) -> Finding:
    def is_sharp(course: Course) -> bool:
        steps = course.falling_steps
        return steps is not None and steps <= TOGETHER * course.num_steps

    return _share(method, is_sharp, f"fall from 3/4 to 1/4 of it in {TOGETHER:.0%} of their steps")


def coincides(method: Method) -> Finding:
    def is_close(course: Course) -> bool:
        lead = course.times.lead_of_collapse
        return lead is not None and abs(lead) <= TOGETHER * course.num_steps

    what = f"collapse within {TOGETHER:.0%} of their steps of accuracy {HIGH}"
    return _with_median(_share(method, is_close, what), _leads(method))


def collapse_before(method: Method) -> Finding:
    def is_before(course: Course) -> bool:
        return (course.times.lead_of_collapse or 0) > 0

    found = _share(method, is_before, f"collapse before accuracy {HIGH}")
    return _with_median(found, _leads(method))


def _leads(method: Method) -> list[int]:
    leads = (course.times.lead_of_collapse for course in method.courses)
    return [lead for lead in leads if lead is not None]


def peak_before(method: Method) -> Finding:
    leads = [course.times.lead_of_peak or 0 for course in method.courses]
    what = f"peak before accuracy {HIGH}"
    return _with_median(share_of_runs(sum(lead > 0 for lead in leads), len(leads), what), leads)


def not_monotone(method: Method) -> Finding:
    def peaks_within(course: Course) -> bool:
        return 0 < (course.times.peak_step or 0) < course.num_steps

    return _share(method, peaks_within, "have their largest EU neither first nor last")


def delayed(method: Method) -> Finding:
    def is_delayed(course: Course) -> bool:
        return (course.times.delay or 0) > 0

    delays = [course.times.delay for course in method.courses if course.times.delay is not None]
    found = _share(method, is_delayed, "fitted the training split before that")
    if not delays:
        return found
    return Finding(found.verdict, f"{found.number}; median delay {middle(delays):g} steps")


def delayed_peak(method: Method) -> Finding:
    def is_delayed(course: Course) -> bool:
        train, test = course.train_peak_step, course.times.peak_step
        return train is not None and test is not None and train < test

    return _share(method, is_delayed, "have the EU peak of the training split before that one")


def diagnostic(method: Method) -> Finding:
    ends = method.last_uncertainty_by_end("id_val")
    low, high = ends["generalised"], [*ends["memorised"], *ends["lost"]]
    if min(len(low), len(high)) < FEWEST_RUNS:
        return Finding("not tested", f"{len(low)} runs generalised, {len(high)} memorised")
    pairs = [(one < other) + 0.5 * (one == other) for one in low for other in high]
    area = sum(pairs) / len(pairs)
    text = f"AUROC {area:.2f} of the last EU, {len(low)} runs that generalised, {len(high)} not"
    return decided(text, area >= 0.95, area > 0.75)


CLAIMS = (
    Claim(
        "collapse",
        "Abstract; contributions (2); conclusion",
        "EU collapses when the model groks",
        collapse,
    ),
    Claim(
        "sharp",
        "Abstract; Figure 1, title; conclusion",
        "the collapse is sharp, sudden",
        sharp,
    ),
    Claim(
        "coincides",
        "Figure 1, title; contributions (2); conclusion",
        "the collapse coincides with the grokking transition",
        coincides,
    ),
    Claim(
        "collapse before",
        "Figure 1, caption",
        "EU collapses before the generalisation transition",
        collapse_before,
    ),
    Claim(
        "peak before",
        "Empirical trajectory, caption; takeaway",
        "the EU peak occurs before the accuracy threshold is exceeded",
        peak_before,
    ),
    Claim(
        "not monotone",
        "Section 5, text",
        "as in the linear model, EU is non-monotone over training",
        not_monotone,
    ),
    Claim(
        "delayed",
        "Section 5, text",
        "as in the linear model, training error decays before generalisation error",
        delayed,
    ),
    Claim(
        "delayed peak",
        "Section 5, takeaway",
        "as in the linear model, the EU peak of unseen inputs comes after that of training",
        delayed_peak,
    ),
    Claim(
        "diagnostic",
        "Abstract; task diversity, text",
        "EU is a label-free diagnostic of generalisation",
        diagnostic,
    ),
)
