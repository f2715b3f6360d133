"""The detection benchmark at a tiny size, and the scores it rests on."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.detection import data, records, scores  # noqa: E402
from benchmarks.detection.judging import Verdict  # noqa: E402
from benchmarks.detection.run import record  # noqa: E402
from benchmarks.detection.statistics import STATISTICS, table_of_looks  # noqa: E402
from benchmarks.detection.suite import SUITE  # noqa: E402
from benchmarks.detection.training import build  # noqa: E402


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("records")
    for seed in (0, 1):
        content = record("add-31-ungrok", seed, length=0.01, num_looks=8)
        records.append(folder, f"add-31-ungrok-{seed}", content)
    return folder


def test_a_run_is_recorded_from_two_seeds_with_all_its_sets(recorded: Path) -> None:
    found = records.load(recorded)
    assert set(found) == {"add-31-ungrok-0", "add-31-ungrok-1"}
    assert records.names(recorded) == set(found)
    one = found["add-31-ungrok-0"]
    assert one["meta"]["sets"] == ["seen", "held out"]
    assert set(one["scalars"][:, 1]) == {0.0, 1.0}  # both phases
    assert one[f"features:{one['deep_index'][0]}:1"].shape == (256, 64)


def test_every_statistic_is_there_and_finite_at_the_last_look(recorded: Path) -> None:
    table = table_of_looks(records.load(recorded))
    last = table["step"] == table["step"].max()
    assert last.any()
    for name in STATISTICS:
        assert np.isfinite(table[name][last]).all(), name
    assert (np.abs(table["generality"]) <= 1.0).all()


def test_names_are_unique_and_every_run_builds_and_answers() -> None:
    assert len({spec.kind for spec in SUITE.values() if spec.role == "held out"}) >= 12
    for spec in SUITE.values():
        made = spec.phases[0].data(0)
        model = build(spec, 0, made)
        assert model(made.train[0][:3]).shape[-1] == made.num_classes
        assert not {spec.kind for spec in SUITE.values() if spec.role == "development"} & {
            spec.kind for spec in SUITE.values() if spec.role == "held out"
        }


@pytest.mark.parametrize("name", ["s4", "a5", "d15"])
def test_group_tables_are_those_of_groups(name: str) -> None:
    whole = data.group(0, name, 1.0)
    size = whole.vocabulary // 2
    table = torch.empty(size, size, dtype=torch.long)
    x, y = whole.train
    table[x[:, 0], x[:, 1] - size] = y
    assert torch.equal(table[table], table[:, table])  # (ab)c = a(bc)
    assert all(len(row.unique()) == size for row in table)


def test_auroc_and_rank_correlation_of_worked_examples() -> None:
    score, positive = np.array([1.0, 2.0, 2.0, 3.0]), np.array([False, True, False, True])
    assert scores.auroc(score, positive) == 0.875
    assert scores.spearman(score, score**3) == pytest.approx(1.0)
    assert scores.best_threshold(np.array([0.0, 1.0, 4.0, 5.0]), np.arange(4) >= 2) == 2.5


def test_the_rising_map_pools_what_falls() -> None:
    fitted = scores.isotonic(np.arange(4.0), np.array([0.0, 2.0, 1.0, 3.0]))
    np.testing.assert_allclose(fitted(np.arange(4.0)), [0.0, 1.5, 1.5, 3.0])


def test_drawing_runs_again_keeps_the_looks_of_a_run_together() -> None:
    groups = np.array(["a", "a", "b", "b"])
    sizes = scores.bootstrap(groups, lambda index: float(len(set(index))), num_draws=50)
    assert set(sizes) == {2.0, 4.0}


def verdict(states: str, generality: list[float]) -> Verdict:
    names = {"F": "fitting", "M": "memorising", "G": "generalised", "L": "lost"}
    return Verdict(
        run="",
        kind="",
        role="",
        truth="",
        watched="",
        states=tuple(names[letter] for letter in states),
        generality=np.array(generality),
        steps=10 * np.arange(1, len(states) + 1),
        is_readable=np.full(len(states), True),
    )


def test_an_announcement_is_judged_by_what_was_true_at_that_look() -> None:
    right = verdict("FMMGG", [0.0, 0.1, 0.96, 1.0, 1.0])
    assert (right.outcome, right.is_false_alarm, right.is_miss) == ("generalised", False, False)
    assert right.lag == (40 / 30, 1)
    wrong = verdict("FMGGG", [0.0, 0.1, 0.1, 0.2, 0.1])
    assert (wrong.outcome, wrong.is_false_alarm, wrong.is_miss) == ("not", True, False)
    missed = verdict("FMMMM", [0.0, 0.1, 0.5, 0.95, 0.95])
    assert (missed.is_miss, missed.lag) == (True, None)


def test_a_loss_may_be_noticed_late_or_never() -> None:
    late = verdict("FGGGL", [0.0, 1.0, 0.9, 0.3, 0.2])
    assert (late.outcome, late.is_false_alarm, late.is_miss, late.num_late) == (
        "lost",
        False,
        False,
        1,
    )
    assert verdict("FGGGG", [0.0, 1.0, 0.9, 0.3, 0.2]).is_miss
