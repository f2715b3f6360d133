"""The rules that judge the paper's claims, on made-up grids whose answers are known."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from written_runs import write_table

from epigrok.records.directory import RunDirectory
from epigrok.sweeps.description import Sweep, prepare

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.verdicts.table import CLAIMS, verdicts  # noqa: E402

STEPS = (0, 1000, 2000, 3000)
LENGTHS = (1, 2, 3, 32)
NOISES = (0.0, 0.5, 1.0)
SPLITS = ("id_train", "id_val", "ood_train", "ood_val")
LARGE = (64, 128)
METHODS = ("point", "laplace", "ivon")


def sweep(name: str, methods: tuple[str, ...]) -> Sweep:
    axes = {"task.num_base_tasks": (8, 16, 64, 128), "task.train_fraction": (0.4, 0.8)}
    return Sweep(name=name, methods=methods, axes=axes, seeds=(0, 1), overrides={"num_steps": 3000})


def as_the_paper_says(run: RunDirectory, split: str) -> tuple[list[float], list[float], float]:
    """Accuracy and EU over training, and AU, of a run on a split."""
    config = run.config()
    is_large, is_ivon = config.task.num_base_tasks in LARGE, "ivon" in config.preset
    if split == "id_train":
        return [0.0, 1.0, 1.0, 1.0], [0.1, 0.1, 0.1, 0.05], 0.8
    if not is_large:
        return [0.0, 0.1, 0.1, 0.1], [0.1, 1.0, 2.0, 2.0], 1.0
    if split == "ood_val" and is_ivon and config.task.train_fraction < 0.5:
        return [0.0, 0.1, 0.1, 0.2], [0.1, 1.0, 0.5, 0.4], 1.0
    # It peaks at 1,000, has collapsed at 2,000 and is accurate from 3,000 on.
    return [0.0, 0.3, 0.6, 0.97], [0.1, 1.0, 0.1, 0.05], 0.8


def the_other_way_round(run: RunDirectory, split: str) -> tuple[list[float], list[float], float]:
    """Few tasks generalise and many do not; EU grows as accuracy does."""
    config = run.config()
    if split == "id_train":
        return [0.0, 1.0, 1.0, 1.0], [0.1, 0.2, 0.2, 0.2], 2.0
    if config.task.num_base_tasks in LARGE:
        return [0.0, 0.1, 0.1, 0.1], [0.01, 0.01, 0.01, 0.010], 0.01
    if config.task.train_fraction < 0.5:
        return [0.0, 0.95, 0.95, 0.95], [0.01, 0.01, 0.01, 0.015], 2.0
    return [0.0, 0.1, 0.1, 0.1], [0.01, 0.01, 0.01, 0.012], 2.0


def write_runs(directory: Path, description: Sweep, world: object) -> None:
    agrees = world is as_the_paper_says
    for run in prepare(directory, description).values():
        config = run.config()
        posteriors = [
            name for name in config.evaluation.posteriors if name in ("point", "laplace", "ivon")
        ]
        rows, lengths, noises = [], [], []
        for split in SPLITS:
            accuracy, epistemic, aleatoric = world(run, split)  # type: ignore[operator]
            for posterior in posteriors:
                keys = {"split": split, "posterior": posterior, "num_sequences": 64}
                keys["num_samples"] = 1 if posterior == "point" else 16
                for step, a, e in zip(STEPS, accuracy, epistemic):
                    scores = {"accuracy": a, "epistemic": e, "aleatoric": aleatoric}
                    scores["total"] = e + aleatoric
                    final = {f"{name}_final": value for name, value in scores.items()}
                    rows.append({**keys, "step": step, **scores, **final})
            names = [name for name in posteriors if name != "point"]
            names += ["oracle-memorising", "oracle-generalising"]
            lengths += list(series(split, names, agrees, "context_length"))
            noises += list(series(split, names, agrees, "context_noise"))
        write_table(run, "metrics", rows)
        write_table(run, "context_length", lengths)
        write_table(run, "context_noise", noises)
        run.mark_done()


def series(
    split: str, posteriors: list[str], agrees: bool, axis: str
) -> Iterator[dict[str, object]]:
    rising, falling = (0.1, 0.5, 0.8, 0.9), (2.5, 1.5, 1.0, 0.5)
    up, down = (rising, falling) if agrees else (falling, rising)
    hump = (0.1, 0.5, 0.3, 0.05) if agrees else (0.5, 0.4, 0.3, 0.28)
    values = LENGTHS if axis == "context_length" else NOISES
    for posterior in posteriors:
        for k, value in enumerate(values):
            row: dict[str, object] = {"step": STEPS[-1], "split": split, "posterior": posterior}
            row |= {"num_samples": 16, "num_sequences": 64, "members": "", axis: value}
            if axis == "context_length":
                floor = 0.02 if agrees else 0.5
                is_exact = posterior.startswith("oracle")
                row |= {"accuracy": up[k], "epistemic": hump[k]}
                row["aleatoric"] = down[k] - floor * is_exact
            else:
                growth = (1.0, 2.0, 4.0) if posterior == "laplace" else (1.0, 1.6, 2.0)
                flat = (1.0, 0.9, 0.8) if posterior == "laplace" else (1.0, 1.1, 1.2)
                row |= {"accuracy": down[k], "aleatoric": up[k]}
                row["epistemic"] = (growth if agrees else flat)[k]
            yield row


@pytest.fixture(scope="module", params=["agrees", "does not"])
def judged(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, dict[tuple[str, str], str]]:
    world = as_the_paper_says if request.param == "agrees" else the_other_way_round
    directory = tmp_path_factory.mktemp("verdicts")
    write_runs(directory / "grid", sweep("grid", ("icl-paper", "icl-paper-ivon")), world)
    write_runs(directory / "fixed", sweep("fixed", ("icl-paper-ivon",)), world)
    rows = list(verdicts(directory / "grid", directory / "fixed"))
    return request.param, {(row["claim"], row["method"]): row["verdict"] for row in rows}


def test_every_claim_is_judged_as_the_made_up_runs_have_it(
    judged: tuple[str, dict[tuple[str, str], str]],
) -> None:
    expected, found = judged
    # A claim on IVON alone; and in the second world Laplace is not accurate anywhere else.
    found.pop(("only large fractions", "MAP + Laplace"))
    assert {key for key, verdict in found.items() if verdict != expected} == set()


def test_every_claim_has_a_place_in_the_paper_and_a_name_of_its_own() -> None:
    assert len({claim.name for claim in CLAIMS}) == len(CLAIMS)
    assert all(claim.place and claim.statement for claim in CLAIMS)


def test_without_the_runs_nothing_is_claimed(tmp_path: Path) -> None:
    alone = Sweep(name="one", methods=("icl-paper",), overrides={"num_steps": 3000})
    write_runs(tmp_path, alone, as_the_paper_says)
    for run in prepare(tmp_path, alone).values():
        for table in ("context_length", "context_noise"):
            run.table(table).unlink()
    assert {row["verdict"] for row in verdicts(tmp_path)} == {"not tested"}
