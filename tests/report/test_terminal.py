"""The table that follows runs in a terminal."""

from pathlib import Path

from made_courses import announced_at, made_course, made_run, rising
from made_runs import announce, make_sweep
from rich.console import Console

from epigrok.config.splits import OOD_VAL
from epigrok.records.status import read_statuses
from epigrok.report.terminal import CURVE_WIDTH, course_table, courses_so_far, sparkline


def shown(table: object, width: int = 80) -> list[str]:
    console = Console(width=width, no_color=True)
    with console.capture() as capture:
        console.print(table)
    return capture.get().splitlines()


def test_a_course_says_where_it_stands_within_a_terminal() -> None:
    run = made_run(state="running", step=850)
    found = [
        made_course(rising(700, last_step=800), announced_at(800), run=run),
        made_course([0.0] * 9, ["fitting"] * 9, split=OOD_VAL, run=run, fitted_from=2000),
    ]
    lines = shown(course_table(found))
    assert max(map(len, lines)) <= 80
    first, second, third, fourth = (line.split() for line in lines if "  " in line.strip()
                                    and "state" not in line)  # fmt: skip
    assert first[:6] == ["classic", "850/1,000", "seen", "1.000", "ratio", "0.50"]
    assert first[6] == "▁▁▁▁▁▁▁██"
    assert second[:7] == ["unseen", "inputs", "generalised", "unseen", "1.000", "EU", "0.900"]
    assert third[-2:] == ["–", "▁" * 9]
    assert "fitting" in fourth


def test_a_run_in_progress_is_read_from_its_files(tmp_path: Path) -> None:
    done, begun, damaged = make_sweep(tmp_path, [700] * 3, [600] * 3)
    announce(done, 800)
    begun.table("metrics").write_text("")
    damaged.table("metrics").write_text('{"step": "x"}\n')
    (course,) = courses_so_far(read_statuses(tmp_path))
    assert course.announced is not None
    assert course.announced.step == 800


def test_a_curve_keeps_its_ends_and_its_width() -> None:
    assert sparkline([]) == ""
    assert sparkline([0.0, None, 2.0]) == "▁▁█"
    assert sparkline([0.5], top=1.0) == "▅"
    long = sparkline([float(k) for k in range(200)])
    assert len(long) == CURVE_WIDTH
    assert (long[0], long[-1]) == ("▁", "█")
