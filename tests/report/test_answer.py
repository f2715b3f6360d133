"""The answer says what happened and what the monitor said of it, in words."""

from pathlib import Path

from made_courses import MEMORISING, announced_at, made_course, made_run, rising
from made_runs import announce, make_sweep
from own_split import give_own_split
from report_pages import Document

from epigrok.config.splits import ID_VAL, OOD_VAL
from epigrok.report import write_report
from epigrok.report.answer import caption, headline, monitor_said
from epigrok.sweeps.description import Sweep, prepare

BLIND = "The monitor, which sees no labels,"


def test_a_run_that_groks() -> None:
    found = [made_course(rising(700), announced_at(800))]
    assert headline(found, [made_run()]) == "It generalised to unseen inputs at step 700."
    assert monitor_said(found) == f"{BLIND} said so at step 800."
    assert caption(found[0], "unseen inputs") == (
        "It generalised to unseen inputs at step 700, 500 steps after it had fitted its training "
        "data. The monitor said so at step 800, without labels."
    )


def test_a_run_that_memorises() -> None:
    found = [made_course([0.0, *[0.03] * 10], MEMORISING)]
    assert headline(found, [made_run()]) == (
        "It memorised its training data: 3 % of unseen inputs are right."
    )
    assert monitor_said(found) == f"{BLIND} calls it memorising (tolerance ratio 0.60)."


def test_a_run_that_generalises_and_loses_unseen_tasks() -> None:
    states = [*announced_at(500)[:9], "lost", "lost"]
    tasks = [*rising(400)[:8], 0.6, 0.2, 0.13]
    found = [
        made_course(rising(400), announced_at(500)),
        made_course(tasks, states, split=OOD_VAL),
    ]
    assert headline(found, [made_run()]) == (
        "It generalised to unseen inputs at step 400 and lost unseen tasks again: "
        "100 % right at step 400, 13 % at step 1,000."
    )
    assert monitor_said(found) == (
        f"{BLIND} announced unseen inputs at step 500 and unseen tasks at step 500, "
        "with 100 % right, and called them lost at step 900."
    )


def test_two_goals_that_were_reached_share_a_verb() -> None:
    found = [made_course(rising(400)), made_course(rising(600), split=OOD_VAL)]
    assert headline(found, [made_run()]) == (
        "It generalised to unseen inputs at step 400 and to unseen tasks at step 600."
    )
    assert monitor_said(found) == ""


def test_an_unfinished_run_says_how_far_it_is() -> None:
    run = made_run(state="running", step=310)
    found = [made_course(rising(900, last_step=300), MEMORISING[:4], run=run)]
    assert headline(found, [run]) == (
        "At step 310 of 1,000, it memorised its training data: 0 % of unseen inputs are right."
    )
    early = [made_course(rising(900, last_step=100), run=run)]
    assert headline(early, [run]) == "At step 310 of 1,000, it has not fitted its training data."


def test_a_run_between_the_two_says_how_accurate_it_is() -> None:
    found = [made_course([0.0] * 8 + [0.86, 0.9, 0.94], announced_at(800))]
    assert headline(found, [made_run()]) == ("It answers 94 % of unseen inputs right.")
    assert monitor_said(found) == f"{BLIND} announced it at step 800, with 86 % right."
    both = [*found, made_course([0.0] * 10 + [0.88], split=OOD_VAL)]
    assert headline(both, [made_run()]) == (
        "It answers 94 % of unseen inputs right and 88 % of unseen tasks right."
    )


def test_a_missed_transition_is_told() -> None:
    found = [made_course(rising(700), MEMORISING)]
    assert monitor_said(found) == (
        f"{BLIND} missed it and calls it memorising (tolerance ratio 0.60)."
    )


def test_a_sweep_with_mixed_fates_is_counted() -> None:
    runs = [made_run(name) for name in "abcdef"]
    found = [
        made_course(rising(400), announced_at(500), run=runs[0]),
        made_course(rising(600), announced_at(900), run=runs[1]),
        made_course(rising(700), MEMORISING, run=runs[2]),
        made_course([0.0] * 11, MEMORISING, run=runs[3]),
        made_course([0.0] * 10 + [0.4], announced_at(1000), run=runs[4]),
        made_course([*rising(300)[:9], 0.3, 0.1], [*announced_at(300)[:9], *["lost"] * 2],
                    run=runs[5]),
    ]  # fmt: skip
    assert headline(found, runs) == (
        "3 of 6 runs generalised to unseen inputs and 1 learnt and lost again."
    )
    assert monitor_said(found) == (
        f"{BLIND} announced 2 of 3 of these, at most 300 steps after accuracy, at the median 200, "
        "1 of 2 of those that did not get there (at most 40 % right when announced) and saw 1 of "
        "1 lost again."
    )


def test_splits_are_counted_where_runs_have_several() -> None:
    runs = [made_run(name) for name in "ab"]
    found = [
        made_course(curve, states, split=split, run=run)
        for run in runs
        for split, curve, states in (
            (ID_VAL, rising(400), announced_at(500)),
            (OOD_VAL, [0.0] * 11, MEMORISING),
        )
    ]
    assert monitor_said(found) == (
        f"{BLIND} announced all 2 of the splits that generalised, at most 100 steps after accuracy "
        "and 0 of 2 of those that did not get there. It judges each split by itself: 4 in 2 runs."
    )
    assert monitor_said(found[1::2]) == (
        f"{BLIND} announced 0 of 2 of those that did not get there."
    )


def test_a_sweep_that_is_not_finished_says_so() -> None:
    runs = [made_run("a"), made_run("b", state="running", step=500)]
    found = [made_course(rising(400), run=run) for run in runs]
    assert headline(found, runs) == (
        "So far, with 1 of 2 runs done, both runs generalised to unseen inputs."
    )


def test_goals_that_only_some_runs_have_are_counted_apart() -> None:
    runs = [made_run(name) for name in "abc"]
    found = [made_course(rising(400), run=run) for run in runs[:2]]
    tasks = [made_course(rising(600), split=OOD_VAL, run=run) for run in runs]
    assert headline([*found, *tasks[:1]], runs) == "Both runs generalised to everything unseen."
    failed = made_course([0.0] * 11, split=OOD_VAL, run=runs[2])
    assert headline([*found, tasks[0], failed], runs) == (
        "Both runs generalised to unseen inputs and 1 of 2 to unseen tasks."
    )


def test_no_announcement_later_than_accuracy(tmp_path: Path) -> None:
    runs = make_sweep(tmp_path, generalised=[600, 700, 700], collapsed=[500] * 3)
    for run, step in zip(runs, (600, 600, 700), strict=True):
        announce(run, step)
    text = Document(write_report(tmp_path)).text
    assert "All 3 runs generalised to unseen inputs." in text
    assert f"{BLIND} announced all 3 of these, no later than accuracy." in text


def test_a_split_of_a_plugin_counts_like_any_other(tmp_path: Path) -> None:
    runs = make_sweep(tmp_path, generalised=[700, None], collapsed=[500, None])
    for run in runs:
        give_own_split(run, instead_of="id_val")
    text = Document(write_report(tmp_path)).text
    assert "1 of 2 runs generalised to unseen inputs." in text
    assert "accuracy odd_cells" in text


def test_a_sweep_that_has_not_begun_is_a_page_too(tmp_path: Path) -> None:
    prepare(tmp_path, Sweep(name="later", methods=("classic",)))
    text = Document(write_report(tmp_path)).text
    assert "Nothing measured yet in 1 run." in text
    assert "classic" in text
