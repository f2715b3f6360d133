"""The scripts under `examples/` do what they say; the plugins among them go all the way."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
SCRIPTS = {
    "along_a_run.py": (
        ["zoo:icl-tiny", "26", "2"],
        r"step 2000\n  id_train +accuracy 1\.00",
    ),
    # Resumed after the first of its two epochs.
    "ivon_in_your_loop.py": (
        ["2"],
        r"Lightning, resumed +0\.000\dσ +1\.0000(.*\n)+.*Transformers, resumed +0\.000\dσ +1\.0000",
    ),
    "grokking_in_lightning.py": (
        [],
        r"held out is memorising\n(.*\n)*step \d+: held out is generalised\n"
        r"stopped at step \d+; held-out accuracy (0\.9\d|1\.00)",
    ),
    "grokking_in_transformers.py": (
        [],
        r"held out is memorising\n(.*\n)*step \d+: held out is generalised\n"
        r"(.*\n)*stopped at step \d+; held-out accuracy (0\.9\d|1\.00)",
    ),
    "when_did_it_grok.py": (["run", "60"], r"laplace +fitted at (None|\d+), generalised at None"),
}
PLUGINS = ("own_task.py", "own_posterior.py", "own_figure.py")
TINY = {
    "num_steps": 20,
    "batch_size": 32,
    "schedule.warmup_steps": 2,
    "evaluation.every": 10,
    "evaluation.num_sequences": 30,
    "evaluation.num_sampled_sequences": 30,
    "evaluation.num_samples": 2,
    "evaluation.num_final_samples": 3,
    "evaluation.posteriors": ["point", "weight-noise:0.1", "feature-dropout:0.2"],
    "num_ladder_checkpoints": 2,
}


def test_every_example_is_tried() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == {*SCRIPTS, *PLUGINS}


@pytest.mark.parametrize("name", SCRIPTS)
def test_an_example_runs_and_answers(name: str, tmp_path: Path) -> None:
    arguments, expected = SCRIPTS[name]
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    assert re.search(expected, found.stdout)


def epigrok(where: Path, *words: str, plugins: tuple[str, ...] = PLUGINS) -> str:
    """What a command prints with some of the plugins loaded."""
    flags = [word for name in plugins for word in ("--plugin", str(EXAMPLES / name))]
    command = [sys.executable, "-m", "epigrok", *words, *flags]
    found = subprocess.run(command, cwd=where, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    return found.stdout


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep of two runs whose task and posterior are not the package's own."""
    folder = tmp_path_factory.mktemp("plugins")
    sweep = {"methods": ["own-task"], "seeds": [0, 1], "overrides": TINY}
    (folder / "own.json").write_text(json.dumps(sweep))
    output = epigrok(folder, "sweep", "own.json", "--out", "runs", "--slots", "cpu*2")
    assert output.count(" done\n") == 2
    return folder


def test_a_sweep_writes_down_which_plugins_its_runs_need(swept: Path) -> None:
    for run in (swept / "runs").glob("*/run.json"):
        plugins = json.loads(run.read_text())["plugins"]
        assert [plugin["file"] for plugin in plugins] == ["own_task.py", "own_posterior.py"]
        provenance = json.loads((run.parent / "provenance.json").read_text())
        digests = {plugin["file"]: plugin["digest"] for plugin in plugins}
        assert provenance["processes"][-1]["plugins"] == digests


def test_a_run_with_plugins_is_evaluated_and_its_facts_are_columns(swept: Path) -> None:
    run = next((swept / "runs").glob("*/DONE")).parent
    output = epigrok(swept, "evaluate", str(run), "--series", "context-length", "--device", "cpu")
    assert "feature-dropout:0.2" in output
    assert "oracle-generalising" in output
    rows = [json.loads(line) for line in (run / "final.jsonl").read_text().splitlines()]
    rates = {row["posterior"]: row.get("dropout_rate") for row in rows}
    assert rates == {"point": None, "weight-noise:0.1": None, "feature-dropout:0.2": 0.2}


def test_figures_and_report_need_no_plugin_but_take_one(swept: Path) -> None:
    epigrok(swept, "figure", "trajectory", "runs", plugins=())
    epigrok(swept, "figure", "gradient-norm", "runs", plugins=("own_figure.py",))
    assert (swept / "runs" / "figures" / "gradient-norm.csv").stat().st_size > 100
    quick = str(Path(__file__).parent / "quick_theory.py")
    page = Path(epigrok(swept, "report", "runs", plugins=("own_figure.py", quick)).strip())
    text = (swept / page).read_text()
    assert "gradient-norm" in text
    assert "feature-dropout:0.2" in text


def test_without_its_plugin_a_run_says_what_it_needs(swept: Path) -> None:
    run = next((swept / "runs").glob("*/DONE")).parent
    command = [sys.executable, "-m", "epigrok", "evaluate", str(run)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 2
    assert "needs the plugin own_task.py (task SquareTask)" in found.stderr
    assert found.stderr.count("\n") == 1
