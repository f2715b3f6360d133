"""`epigrok theory`, and theory_delay.py behind it, from the outside: files, keys, exit codes."""

import json
from pathlib import Path
from typing import Any

import pytest

from epigrok.cli import main
from epigrok.theory.delay import crossings

GOLDEN = json.loads((Path(__file__).parents[1] / "theory" / "golden.json").read_text())


def delay_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["theory", "delay", *arguments, "--json"]) == 0

    def refuse(token: str) -> float:
        raise AssertionError(f"{token} is not JSON")

    content: dict[str, Any] = json.loads(capsys.readouterr().out, parse_constant=refuse)
    return content


@pytest.mark.parametrize("row", GOLDEN["crossings"][::5], ids=lambda row: row["lambda"])
def test_json_has_the_golden_times(row: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    content = delay_json(
        capsys, "--lam", row["lambda"], "--eps-over-c0", row["eps_over_C0"], "--gamma", row["gamma"]
    )
    names = set(row) - {"lambda", "gamma", "eps_over_C0"}
    assert len(names) == 11
    for name in names:
        assert content[name] == pytest.approx(float(row[name]), rel=1e-9), name
    for event in ("peak", "grok"):
        lower, upper = (content[f"delta_s_{end}_{event}"] for end in ("lower", "upper"))
        assert lower <= content[f"delta_s_{event}"] <= upper <= content["delta_s_paper"]


def test_json_without_a_crossing(capsys: pytest.CaptureFixture[str]) -> None:
    content = delay_json(capsys, "--lam", "1.5", "--eps-over-c0", "1")
    assert content["s_emp_peak"] is None
    assert content["s_gen_grok"] == "inf"
    assert content["delta_s_paper"] is None
    validity = content["validity"]
    assert validity["all_hold"] is False
    failed = {
        item["name"]: item["meaning"] for item in validity["assumptions"] if item["holds"] is False
    }
    assert "uncertainty only falls" in failed["peak_exists"]


def test_json_uses_what_it_is_told_about_the_system(capsys: pytest.CaptureFixture[str]) -> None:
    content = delay_json(
        capsys, "--lam", "0.9", "--eps-over-c0", "1e-6", "--d", "900",
        "--floor-over-eps", "9e-4", "--covariance-share", "0.99",
    )  # fmt: skip
    assert content["validity"]["effective_modes"] == pytest.approx(1.81, abs=0.01)
    holds = {item["name"]: item["holds"] for item in content["validity"]["assumptions"]}
    assert holds["negligible_floor"] is True
    assert holds["covariance_carries_risk"] is True
    assert holds["many_modes"] is False


@pytest.mark.parametrize("lam", ["0.9", "1.5"])
def test_the_table_is_for_people(lam: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["theory", "delay", "--lam", lam, "--eps-over-c0", "1e-3"]) == 0
    text = capsys.readouterr().out
    exact = crossings(float(lam), 0.0, 1e-3)
    assert f"{exact.s_emp_peak:.7g}" in text
    assert f"{exact.s_gen_peak:.7g}" in text
    for word in ("EU peak", "accuracy threshold", "leading order", "Lambert W", "lower bound",
                 "validity", "FAILS"):  # fmt: skip
        assert word in text
    assert ("atom alone" in text) is (lam == "1.5")
    assert max(map(len, text.splitlines())) < 160


@pytest.mark.parametrize(
    ("arguments", "never"),
    [
        (["--lam", "1", "--eps-over-c0", "1e-300"], False),
        (["--lam", "1.5", "--gamma", "1e-308", "--eps-over-c0", "1e-3"], False),
        (["--lam", "1.5", "--eps-over-c0", "1e-3"], True),
    ],
)
def test_late_is_not_never(
    arguments: list[str], never: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    content = delay_json(capsys, *arguments)
    word = "inf" if never else "beyond 1e308"
    assert content["s_gen_peak"] == content["delta_s_grok"] == word
    reached = next(x for x in content["validity"]["assumptions"] if x["name"] == "peak_is_reached")
    assert reached["value"] == word
    assert reached["holds"] is not never
    assert main(["theory", "delay", *arguments]) == 0
    text = capsys.readouterr().out
    assert ("never" in text.splitlines()[4]) is never
    assert ("beyond 1e308" in text.splitlines()[4]) is not never


@pytest.mark.parametrize("gamma", ["0", "1", "1e300"])
@pytest.mark.parametrize("lam", ["1e-300", "1", "1e300"])
def test_extreme_parameters_print_numbers_and_nothing_else(
    lam: str, gamma: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Warnings are errors in the tests."""
    delay_json(capsys, "--lam", lam, "--gamma", gamma, "--eps-over-c0", "1e-200", "--d", "9")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["delay", "--lam", "0.5", "--eps-over-c0", "5e-324"], "eps_over_C0 must be at least 1.78"),
        (["delay", "--lam", "-1", "--eps-over-c0", "1e-3"], "lam must be positive, not -1.0"),
        (["delay", "--lam", "0.9", "--eps-over-c0", "0"], "eps_over_C0 must be positive, not 0.0"),
        (["delay", "--lam", "nan", "--eps-over-c0", "0.1"], "lam must be finite, not nan"),
        (["delay", "--lam", "x", "--eps-over-c0", "1e-3"], "--lam"),
        (["delay", "--lam", "0.9"], "--eps-over-c0"),
        (["delay", "--lam", "0.9", "--eps-over-c0", "1", "--wrong", "1"], "--wrong"),
        (["--n", "1"], "n must be at least 2, not 1"),
        (["--seeds", "-1"], "seeds must not be negative, not -1"),
        (["nonsense"], "nonsense"),
    ],
)
def test_mistakes_end_with_exit_code_two(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["theory", *arguments]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert "Traceback" not in captured.err
    assert not captured.out


@pytest.mark.parametrize("arguments", [["--help"], ["delay", "--help"]])
def test_help_explains_and_succeeds(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["theory", *arguments]) == 0
    text = capsys.readouterr().out
    assert "epigrok theory delay" in text
    assert "usage" in text


@pytest.mark.usefixtures("unrendered")
def test_figures_and_data_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "folder"
    assert main(["theory", "--out", str(out), "--n", "60", "--seeds", "1", "--eps", "0.004"]) == 0
    printed = [Path(line) for line in capsys.readouterr().out.splitlines()]
    assert sorted(printed) == sorted(out.iterdir())
    names = {path.name for path in printed}
    assert names == {
        f"{figure}.{suffix}"
        for figure in ("theory-summary", "theory-delay-error", "theory-tolerance")
        for suffix in ("pdf", "svg", "png", "csv", "txt")
    }
    assert "ε = 0.004" in (out / "theory-summary.txt").read_text()
