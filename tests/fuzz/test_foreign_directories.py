"""Whatever a foreign run directory holds: success or one sentence, nothing written outside it."""

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from called_command import told
from damaged_files import DAMAGES, Damage, apply, seal
from hypothesis import HealthCheck, example, given, seed, settings
from hypothesis import strategies as st
from made_runs import make_sweep, one_figure
from matplotlib.figure import Figure
from tiny_run import tiny

import epigrok
from epigrok import cli
from epigrok.figures.catalogue import figures
from epigrok.records.directory import SWEEP
from epigrok.report import page
from epigrok.runs import TrainOptions

NUM_SHARDS, NUM_EACH = 8, 260
FEW = ("--num-sequences", "4", "--num-samples", "2")
SMALL = ("--num-steps", "1", "--batch-size", "8", "--model.width", "16", "--device", "cpu")
UNCERTAIN = ("--evaluation.posteriors", "point", "--evaluation.num-sequences", "8")
READERS: dict[str, tuple[tuple[str, ...], ...]] = {
    "train": (("icl-tiny", "--out", "{run}", *SMALL, *UNCERTAIN),),
    "evaluate": (
        ("{run}", "--times"),
        ("{run}", *FEW),
        ("{run}", "--series", "context-length", *FEW),
    ),
    "sweep": (("{grid}", "--out", "{sweep}", "--dry-run", "--where", "run_seed=0,1"),),
    "status": (("{run}",), ("{sweep}",)),
    "check": (("{run}",), ("{sweep}",)),
    "figure": tuple((name, "{run}") for name in figures() if not name.startswith("theory")),
    "report": (("{run}",), ("{sweep}",)),
    "monitor": (("{run}", "--device", "cpu"),),
    "separation": (("{run}",), ("{sweep}",)),
    "compare": (("{run}",), ("{sweep}", "--where", "run_seed=0"), ("{sweep}", "{run}")),
    "settings": (("{run}",), ("{sweep}", "--where", "run_seed=0")),
    "export": (
        *(("{run}", "{out}/x.parquet", "--table", name) for name in ("tolerance", "positions")),
        ("{sweep}", "{out}/x.parquet"),
    ),
    "tensorboard": (("{run}", "--logdir", "{out}/tb"), ("{sweep}", "--logdir", "{out}/tb")),
    "run": (("{run}", "--device", "cpu"),),
}
"""Every command that reads run directories, with the arguments to try."""
OTHERS = {"demo", "columns", "zoo", "bench", "presets", "theory", "init"}
"""Commands that read no run directory; `demo` trains, evaluates and reports as the others do."""
COMMANDS = [(name, *arguments) for name, tried in READERS.items() for arguments in tried]
CASES: dict[str, Any] = {
    "changes": st.lists(DAMAGES, min_size=1, max_size=3),
    "command": st.sampled_from(COMMANDS),
    "which": st.sampled_from(("done", "stopped", "made")),
    "is_sealed": st.booleans(),
}
Record = Callable[[str, object], None]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep with a run that is done and evaluated, one that was stopped and one made up."""
    sweep = tmp_path_factory.mktemp("fuzz") / "sweep"
    make_sweep(sweep, [500, None], [600, None])
    epigrok.train(tiny(), sweep / "done")
    assert cli.main(["evaluate", str(sweep / "done"), *FEW]) == 0
    epigrok.train(tiny(), sweep / "stopped", TrainOptions(stop_at_step=12))
    return sweep


@pytest.fixture(autouse=True)
def _without_images(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes seconds, and nothing of it depends on the files any more."""
    monkeypatch.setattr(Figure, "savefig", lambda self, file, **_: file.write(b"<svg/>"))
    monkeypatch.setattr(page, "draw_all", one_figure)


def run_named(which: str, sweep: Path) -> Path:
    """A run of the sweep; those that are made up are named by a digest, as a sweep's runs are."""
    if which != "made":
        return sweep / which
    names = {path.name for path in sweep.iterdir() if path.is_dir()} - {"done", "stopped"}
    return sweep / min(names)


def snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    """Names, sizes and times of all that lies in a folder, links not followed."""
    return {
        str(path): (path.lstat().st_size, path.lstat().st_mtime_ns)
        for parent, folders, files in os.walk(folder)
        for path in (Path(parent) / name for name in (*folders, *files))
    }


def assert_success_or_one_sentence(
    original: Path, changes: list[Damage], command: list[str], which: str, is_sealed: bool
) -> int:
    with tempfile.TemporaryDirectory() as scratch:
        place, out, outside = (Path(scratch) / name for name in ("place", "out", "outside"))
        shutil.copytree(original, place / "sweep")
        out.mkdir()
        outside.mkdir()
        (outside / "file").write_text("{}\n")
        run = run_named(which, place / "sweep")
        grid = json.loads((original / SWEEP).read_text())["sweeps"][0]
        (out / "grid.json").write_text(json.dumps(grid))
        for change in changes:
            apply(change, run, outside)
        if is_sealed:
            seal(run)
        before = snapshot(outside), set(os.listdir(scratch)), set(os.listdir(place))
        places = {"run": run, "sweep": place / "sweep", "out": out, "grid": out / "grid.json"}
        arguments = [argument.format(**places) for argument in command]
        exit_code, text = told(arguments)
        assert exit_code in (0, 1, 2, 75), text
        assert "\x1b" not in text
        # A worker prints what it did not expect into its log; here that would be a bug.
        assert "Traceback" not in text, text
        assert exit_code == 0 or text.strip(), arguments
        assert before == (snapshot(outside), set(os.listdir(scratch)), set(os.listdir(place)))
    return exit_code


def found_before(test: Callable[..., None]) -> Callable[..., None]:
    """Try what once ended in a traceback, whatever else is drawn."""
    for which, command, *names in (
        ("done", COMMANDS[1], "metrics.jsonl"),
        ("done", COMMANDS[3], "context-length.jsonl"),
        ("made", ("monitor", "{run}", "--device", "cpu"), "status.json"),
        ("stopped", ("run", "{run}", "--device", "cpu"), "checkpoints/step-20/resume.pt"),
        ("stopped", ("check", "{run}"), "checkpoints", "checkpoints/step-20/model.safetensors"),
    ):
        for chance in (0, 13568, 13569):
            changes = [Damage(name, "value", [], chance) for name in names]
            test = example(changes=changes, command=command, which=which, is_sealed=False)(test)
    return test


def test_every_command_that_reads_run_directories_is_tried() -> None:
    assert READERS.keys() | OTHERS == cli.COMMANDS.keys()


@settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(**CASES)
@found_before
def test_a_few_foreign_directories(original: Path, **case: Any) -> None:
    assert_success_or_one_sentence(original, **case)


@pytest.mark.fuzz
@pytest.mark.parametrize("shard", range(NUM_SHARDS))
def test_thousands_of_foreign_directories(
    shard: int, original: Path, record_property: Record
) -> None:
    counts = {"tried": 0, "succeeded": 0, "ended with a sentence": 0}

    @seed(shard)
    @settings(
        max_examples=NUM_EACH,
        derandomize=False,
        database=None,
        suppress_health_check=[*HealthCheck],
    )
    @given(**CASES)
    def check(**case: Any) -> None:
        exit_code = assert_success_or_one_sentence(original, **case)
        counts["tried"] += 1
        counts["succeeded" if exit_code == 0 else "ended with a sentence"] += 1

    check()
    record_property("foreign run directories", counts)
