"""The detection benchmark at a tiny size, and the scores it rests on."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.detection import records, scores
from benchmarks.detection.judging import Verdict
from benchmarks.detection.kinds import data_1, data_3
from benchmarks.detection.kinds.suite import SUITE
from benchmarks.detection.rivals import table_of
from benchmarks.detection.run import record
from benchmarks.detection.statistics import STATISTICS, table_of_looks
from benchmarks.detection.stretch import laplace_ratio
from benchmarks.detection.training import build
from benchmarks.detection.watch import COLUMNS, watched_rows
from benchmarks.detection.watched import (
    count_row,
    labelled,
    looks_in,
    rule_rows,
    sets_of,
    statistic_rows,
)
from benchmarks.detection.watched import verdict as verdict_of
from benchmarks.detection.whole_network import Pick, network_tolerances


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("records")
    for seed in (0, 1):
        content = record("add-31-ungrok", seed, length=0.004, num_looks=18)
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


def test_a_set_tolerates_as_much_stretch_of_a_posterior_as_it_does_itself(recorded: Path) -> None:
    one = records.load(recorded)["add-31-ungrok-0"]
    index = int(one["deep_index"][0])
    assert laplace_ratio(one, index, 0, 1.0) == 1.0
    assert 0.0 < laplace_ratio(one, index, 1, 1.0) < 10.0


def test_every_statistic_is_there_and_finite_at_the_last_look(recorded: Path) -> None:
    table = table_of_looks(records.load(recorded))
    last = table["step"] == table["step"].max()
    assert last.any()
    for name in STATISTICS:
        if name.startswith("ratio, whole"):  # read where the training set is nearly fitted
            continue
        if "predictab" in name:  # read by the monitor alone
            assert name not in table
            continue
        assert np.isfinite(table[name][last]).all(), name
    assert (np.abs(table["generality"]) <= 1.0).all()


def test_names_are_unique_and_every_run_builds_and_answers() -> None:
    kinds: dict[str, set[str]] = {}
    for spec in SUITE.values():
        kinds.setdefault(spec.role, set()).add(spec.kind)
    assert min(map(len, kinds.values())) >= 12
    assert len(set.union(*kinds.values())) == sum(map(len, kinds.values()))
    for spec in SUITE.values():
        made = spec.phases[0].data(0)
        model = build(spec, 0, made)
        assert model(made.train[0][:3]).shape[-1] == made.num_classes


@pytest.mark.parametrize("name", ["s4", "a5", "d15", "affine"])
def test_group_tables_are_those_of_groups(name: str) -> None:
    whole = data_1.group(0, name, 1.0) if name != "affine" else data_3.affine_group(0, 5, 1.0)
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
        way="monitor",
        states=tuple(names[letter] for letter in states),
        generality=np.array(generality),
        steps=10 * np.arange(1, len(states) + 1),
    )


def test_a_loss_is_judged_by_what_was_true_at_that_look() -> None:
    assert verdict("FGL", [0.0, 1.0, 0.9]).is_false_loss
    assert not verdict("FGLL", [0.0, 1.0, 0.5, 1.0]).is_false_loss


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


def test_the_answers_of_fresh_tasks_are_those_of_a_plain_loop() -> None:
    graphs = data_3.connected(0, 5, 64)
    for row, label in zip(graphs.train[0][:32] > 0, graphs.train[1]):
        pairs = [(a, b) for a in range(5) for b in range(a + 1, 5)]
        reached = {0}
        for _ in range(5):
            for (a, b), is_edge in zip(pairs, row):
                if is_edge and reached & {a, b}:
                    reached |= {a, b}
        assert (1 in reached) == bool(label)
    strings = data_3.contains(0, 12, 64)
    for row, label in zip(strings.train[0], strings.train[1]):
        assert ("201" in "".join(map(str, row.tolist()))) == bool(label)
    x, y = data_3.rank_of_first(0, 5, 64).train
    assert torch.equal(x.argsort(dim=1).argsort(dim=1)[:, 0], y)


def test_noise_on_all_but_the_head_is_the_noise_of_the_network_without_it() -> None:
    """With no other parameters nothing is disturbed; with one more layer something is."""
    torch.manual_seed(0)
    x = torch.randn(256, 6)
    bare, deep = torch.nn.Module(), torch.nn.Sequential()
    bare.head = torch.nn.Linear(6, 3)
    bare.forward = lambda inputs: bare.head(inputs)  # type: ignore[method-assign]
    deep.add_module("first", torch.nn.Linear(6, 6))
    deep.add_module("head", torch.nn.Linear(6, 3))

    def part(count: int) -> tuple[torch.Tensor, Pick]:
        return x[:count], lambda output: output

    untouched, _ = network_tolerances(bare, part, 3, is_slow=False)
    assert untouched["all but head"].reason == "answers survive noise 100"
    assert 0.01 < untouched["whole"].value < 1.0
    found, seconds = network_tolerances(deep, part, 3, is_slow=False)
    assert found["all but head"].value > found["whole"].value
    assert seconds > 0.0


@pytest.fixture(scope="module")
def watched() -> list[dict[str, Any]]:
    """Two seeds of a short run, under the monitor as it is and in another way."""
    ways = ("monitor", "nothing passed")
    return [
        row
        for seed in (0, 1)
        for row in watched_rows("decoys-little", seed, num_looks=6, length=0.1, ways=ways)
    ]


def test_a_run_under_the_monitor_is_written_with_what_was_true_and_what_was_said(
    watched: list[dict[str, Any]],
) -> None:
    rows, others = (
        [row for row in watched if row["run"] == "decoys-little-0" and row["way"] == way]
        for way in ("monitor", "nothing passed")
    )
    assert [row["tolerance_ratio"] for row in rows] == pytest.approx(
        [row["tolerance_ratio"] for row in others], nan_ok=True
    )
    assert [row["step"] for row in rows] == sorted({row["step"] for row in rows})
    assert set(rows[-1]) == set(COLUMNS)
    assert rows[0]["state"] == "fitting"
    assert rows[-1]["train accuracy"] > 0.95
    assert rows[-1]["state"] in ("memorising", "generalising")
    assert rows[-1]["generality"] < 0.5


def test_rivals_are_read_at_the_same_looks_and_two_runs_are_compared(
    watched: list[dict[str, Any]],
) -> None:
    table = table_of([row for row in watched if row["way"] == "monitor"])
    assert (table["weight norm"][table["step"] == table["step"].min()] == -1.0).all()
    assert (table["eu over its peak"] >= -1.0).all()
    first, second = (table["gde"][table["run"] == f"decoys-little-{seed}"] for seed in (0, 1))
    np.testing.assert_allclose(first, second)
    assert 0.0 < first[-1] < 1.0
    others = table["ratio and predictability"]
    assert ((others == table["ratio"]) | (others == 0.0) | np.isnan(others)).all()


def test_the_tables_count_every_way_and_a_few_labels(watched: list[dict[str, Any]]) -> None:
    rows = {(row["kinds"], row["who"]): row for row in rule_rows(sets_of(watched))}
    kinds = {"unseen by rule 3", "chosen on", "all"}
    whos = {"monitor", "nothing passed", "16 labels", "64 labels"}
    assert set(rows) == {(group, who) for group in kinds for who in whos}
    for row in rows.values():
        assert (row["runs"], row["not generalised"], row["false alarms"]) == (2, 2, 0)


def test_statistics_are_scored_on_fitted_looks_of_sets_that_no_shortcut_fools() -> None:
    """General sets have a ratio of 1, others 0.1; where nothing is fitted and at blind spots it is
    the other way round."""
    lines = [
        *[(f"a{at}", 1.0 - 0.01 * at, 1.0 - 0.01 * at, 1.0, "generalises") for at in range(4)],
        *[(f"b{at}", 0.01 * at, 0.1 + 0.01 * at, 1.0, "does not") for at in range(4)],
        ("c", 0.0, 1.0, 0.5, "does not"),
        ("d", 0.0, 1.0, 1.0, "blind spot"),
    ]
    columns = ("run", "generality", "ratio", "train accuracy", "truth")
    table = {name: np.array(values) for name, values in zip(columns, zip(*lines))}
    table |= dict.fromkeys(("recipe", "kind", "watched"), table["run"])
    table |= {name: np.full(len(lines), value)
              for name, value in (("chance", 0.1), ("role", "unseen by rule 7"))}  # fmt: skip
    rows = statistic_rows(table)
    assert {row["kinds"] for row in rows} == {"unseen by rule 7", "all"}
    for row in rows:
        assert (row["statistic"], row["looks"], row["auroc"]) == ("ratio", 8, 1.0)
        assert row["auroc, ends of runs"] == 1.0


def test_labelled_rows_say_generalised_where_nine_in_ten_are_right() -> None:
    looks = [{"16 labels": share} for share in (0.5, 0.9375, 0.875, 1.0)]
    assert labelled(looks, "16 labels") == ["memorising", "generalised", "lost", "generalised"]


def test_what_the_monitor_said_is_judged_set_by_set(tmp_path: Path) -> None:
    lines = [
        dict.fromkeys(COLUMNS, "nan")
        | {"run": "spirals-0", "watched": name, "step": str(step), "state": state, "unreadable": ""}
        | {"generality": generality, "truth": "generalises", "kind": "spirals", "way": "monitor"}
        for step, name, state, generality in [
            (20, "a", "generalised", "1"), (20, "b", "generalised", "0.2"),
            (10, "a", "fitting", "0"), (10, "b", "fitting", "0"),
        ]
    ]  # fmt: skip
    path = tmp_path / "looks.csv"
    path.write_text("\n".join([",".join(COLUMNS), *(",".join(line.values()) for line in lines)]))
    right, wrong = (verdict_of(looks) for looks in sets_of(looks_in(path)))
    assert (right.outcome, right.is_false_alarm, right.lag) == ("generalised", False, (1.0, 0))
    assert (wrong.outcome, wrong.is_false_alarm) == ("not", True)
    row = count_row("all", "monitor", [right, wrong])
    assert (row["generalised"], row["not generalised"], row["false alarms"]) == (1, 1, 1)
