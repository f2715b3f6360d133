"""The rules that judge the paper's claims, on made-up grids whose answers are known."""

from dataclasses import replace
from pathlib import Path

import pytest
from made_up_grids import (
    ONE_PARAMETER,
    PAPERS,
    STEPS,
    Family,
    Made,
    World,
    as_the_paper_says,
    the_other_way_round,
    turning,
    write_runs,
)

from benchmarks.verdicts.claims import rank_correlation
from benchmarks.verdicts.evidence import methods_of
from benchmarks.verdicts.table import CLAIMS, verdicts
from epigrok.config import RunConfig
from epigrok.errors import UserError
from epigrok.sweeps.description import Sweep, prepare

Rows = dict[tuple[str, str], dict[str, str]]
WORLDS: dict[str, World] = {"agrees": as_the_paper_says, "does not": the_other_way_round}
IVON_ALONE = ("only large fractions", "MAP + Laplace")


def judged(directory: Path, family: Family, world: World) -> Rows:
    write_runs(directory / "grid", family, family.sweep("grid"), world)
    fixed = family.sweep("fixed", family.presets[1:])
    write_runs(directory / "fixed", family, fixed, world)
    rows = verdicts(directory / "grid", directory / "fixed")
    return {(row["claim"], row["method"]): row for row in rows}


@pytest.fixture(scope="module", params=[PAPERS, ONE_PARAMETER], ids=lambda f: f.presets[0])
def family(request: pytest.FixtureRequest) -> Family:
    return request.param


@pytest.fixture(scope="module", params=WORLDS)
def world_and_rows(
    request: pytest.FixtureRequest, family: Family, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Family, Rows]:
    rows = judged(tmp_path_factory.mktemp("verdicts"), family, WORLDS[request.param])
    return request.param, family, rows


def test_every_claim_is_judged_as_the_made_up_runs_have_it(
    world_and_rows: tuple[str, Family, Rows],
) -> None:
    expected, family, rows = world_and_rows
    split_of = {claim.name: claim.split for claim in CLAIMS}
    left = {
        key: row["verdict"]
        for key, row in rows.items()
        if key != IVON_ALONE and split_of.get(key[0], "") in ("", *family.splits)
    }
    if expected == "does not":
        # Nothing generalises at many tasks there, so no fraction could be the right one.
        for method in ("MAP + Laplace", "IVON"):
            assert left.pop(("right fraction", method)) == "not tested"
    assert {key: verdict for key, verdict in left.items() if verdict != expected} == {}


def test_a_claim_on_a_split_that_the_family_lacks_is_not_tested(
    world_and_rows: tuple[str, Family, Rows],
) -> None:
    _, family, rows = world_and_rows
    found = {
        (row["verdict"], row["number"]) for key, row in rows.items() if key[0] == "unseen tasks"
    }
    lacks = ("not tested", "the family has no such split (ood_train)")
    assert (found == {lacks}) == (family is ONE_PARAMETER)


def test_each_row_says_what_it_stands_on(world_and_rows: tuple[str, Family, Rows]) -> None:
    _, family, rows = world_and_rows
    cells = 2 * len(family.counts)
    assert rows["collapse", "IVON"]["runs"] == f"{2 * cells} runs in {cells} cells"
    # The paper takes T = 256 of 512 at the largest fraction.
    number = {PAPERS: 4 * 64, ONE_PARAMETER: 20}[family]
    assert rows["floor", "IVON"]["runs"] == f"2 runs at T = {number}, fraction 0.8"


def test_where_every_fraction_will_do_none_needs_to_be_chosen(tmp_path: Path) -> None:
    def general(family: Family, config: RunConfig, split: str) -> Made:
        made = as_the_paper_says(family, config, split)
        many = family.has_many_tasks(config)
        return replace(made, accuracy=turning(0.0, 0.97, 1200)) if many else made

    rows = judged(tmp_path, ONE_PARAMETER, general)
    assert rows["right fraction", "IVON"]["verdict"] == "does not"
    assert rows["only many tasks", "IVON"]["verdict"] == "agrees"


def test_runs_that_learnt_nothing_say_nothing_about_grokking(tmp_path: Path) -> None:
    def idle(family: Family, config: RunConfig, split: str) -> Made:
        return Made([0.05] * len(STEPS), [0.1] * len(STEPS), 1.0)

    rows = judged(tmp_path, ONE_PARAMETER, idle)
    on_grokking = ("collapse", "diagnostic", "only many tasks", "tracks accuracy", "broader")
    found = {row["verdict"] for key, row in rows.items() if key[0] in on_grokking}
    assert found == {"not tested"}


def test_every_claim_has_a_place_in_the_paper_and_a_name_of_its_own() -> None:
    assert len({claim.name for claim in CLAIMS}) == len(CLAIMS)
    assert all(claim.place and claim.statement for claim in CLAIMS)


def test_without_the_runs_nothing_is_claimed(tmp_path: Path) -> None:
    alone = Sweep(name="one", methods=("icl-paper",), overrides={"num_steps": 3000})
    write_runs(tmp_path, PAPERS, alone, as_the_paper_says)
    for run in prepare(tmp_path, alone).values():
        for table in ("context_length", "context_noise"):
            run.table(table).unlink()
    assert {row["verdict"] for row in verdicts(tmp_path)} == {"not tested"}


def test_noise_on_the_weights_is_no_method_of_the_paper(tmp_path: Path) -> None:
    noise = {"num_steps": 3000, "evaluation.posteriors": ["point", "weight-noise:0.1"]}
    alone = Sweep(name="noise", methods=("icl-paper",), overrides=noise)
    write_runs(tmp_path, PAPERS, alone, as_the_paper_says)
    with pytest.raises(UserError, match="tracks a posterior that is inferred"):
        methods_of(tmp_path)


def test_a_constant_has_no_rank_correlation() -> None:
    assert rank_correlation([1.0, 1.0], [1.0, 2.0]) != rank_correlation([1.0, 1.0], [1.0, 2.0])
    assert rank_correlation([1.0, 2.0, 3.0], [1.0, 4.0, 9.0]) == pytest.approx(1.0)
