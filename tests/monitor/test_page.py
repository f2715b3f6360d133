"""The code on docs/monitor.md runs as a reader would run it."""

from pathlib import Path

from doc_blocks import run_section

PAGE = Path(__file__).resolve().parents[2] / "docs" / "monitor.md"


def test_the_first_example_looks_three_times() -> None:
    names = run_section(PAGE, "What the number means")
    assert [look.step for look in names["monitor"].readings] == [0, 100, 200]
    assert names["reading"].flat()["held out/state"] == "fitting"
