"""A run is disturbed at every single change it makes to its directory, and ends up the same.

The default suite takes two changes for each kind of fault; `make test-faults` tries all.
"""

import random
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from injection import (
    CONFIG,
    FAULTS,
    Ended,
    changes_of,
    disturbed,
    finish,
    has_struck,
    stopped_at,
    stopped_past_its_lease,
    taken_over,
    unannounced_changes_of,
)
from sweep_results import assert_same_run

from epigrok.exit_codes import EXIT_DONE, EXIT_FAILED, EXIT_HELD, EXIT_LOST
from epigrok.records.checking import check_run
from epigrok.records.directory import RunDirectory
from epigrok.runs.describing import write_identity

NUM_SHARDS = 4
NUM_SAMPLED = 2
MORE = 15
"""Changes that a second holder may make and an undisturbed run does not: those of taking over."""
NUM_TAKEOVERS = 60
SAMPLE_OR_ALL = [
    pytest.param(None, id="sample"),
    *(
        pytest.param(shard, marks=pytest.mark.faults, id=f"all-{shard}")
        for shard in range(NUM_SHARDS)
    ),
]
Record = Callable[[str, object], None]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunDirectory, int]:
    """A run that nobody disturbs, and the number of its changes."""
    path = tmp_path_factory.mktemp("whole") / "run"
    return RunDirectory(path), len(changes_of(path))


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "run"
    shutil.rmtree(tmp_path)


def chosen(shard: int | None, number: int, seed: str) -> list[int]:
    """The points of one test: a few, or every one of its shard."""
    if shard is None:
        return random.Random(seed).sample(range(number), NUM_SAMPLED)
    return list(range(shard, number, NUM_SHARDS))


def failures_of(attempts: dict[str, Callable[[], None]], run: Path) -> dict[str, str]:
    """What went wrong with each attempt; every one gets its turn."""
    failures = {}
    for name, attempt in attempts.items():
        try:
            attempt()
        except AssertionError as error:
            failures[name] = str(error)
        shutil.rmtree(run, ignore_errors=True)
    return failures


def assert_finished_alike(run: Path, whole: RunDirectory) -> None:
    """Go on with what is there to the end: nothing shows of what was before."""
    was_done = RunDirectory(run).is_done
    assert finish(run) == Ended(EXIT_DONE, "")
    assert_same_run(RunDirectory(run), whole)
    assert check_run(RunDirectory(run)) == []
    if was_done:
        # Nobody touches a finished run again, not even to sweep up.
        return
    left = sorted(path.name for path in run.iterdir() if path.name.startswith((".work", "lease")))
    assert left == []


def test_every_change_is_announced(whole: tuple[RunDirectory, int], run: Path) -> None:
    assert unannounced_changes_of(run) == []
    assert_finished_alike(run, whole[0])


@pytest.mark.parametrize("shard", SAMPLE_OR_ALL)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_run_that_is_disturbed_anywhere_goes_on_as_if_nothing_had_been(
    fault: str,
    shard: int | None,
    whole: tuple[RunDirectory, int],
    run: Path,
    record_property: Record,
) -> None:
    reference, number = whole
    struck = 0

    def attempt(point: int) -> None:
        nonlocal struck
        ended = disturbed(run, FAULTS[fault](point))
        assert has_struck()
        struck += 1
        # What fails after the end of the work is not always worth a failure.
        expected = {"SIGKILL": {None}, "SIGSTOP": {EXIT_DONE}}
        assert ended.exit_code in expected.get(fault, {EXIT_FAILED, EXIT_DONE}), ended.output
        assert_finished_alike(run, reference)

    points = chosen(shard, number, fault)
    failures = failures_of({str(p): lambda p=p: attempt(p) for p in points}, run)
    record_property(f"{fault}, one holder", {"tried": struck, "failed": len(failures)})
    assert failures == {}


@pytest.mark.parametrize("shard", SAMPLE_OR_ALL)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_run_that_hangs_and_its_disturbed_successor_leave_one_whole_run(
    fault: str,
    shard: int | None,
    whole: tuple[RunDirectory, int],
    run: Path,
    record_property: Record,
) -> None:
    """The successor meets the fault at every change it makes; where the first hangs is random."""
    reference, number = whole
    struck = 0

    def attempt(point: int, hangs_at: int) -> None:
        nonlocal struck
        found = taken_over(run, hangs_at, FAULTS[fault](point))
        struck += found.has_struck
        assert_first_left_it_alone(found.first)
        allowed = {EXIT_DONE, EXIT_HELD}
        if found.has_struck:
            allowed |= {"SIGKILL": {None}, "SIGSTOP": set()}.get(fault, {EXIT_FAILED})
        assert found.second.exit_code in allowed, found
        assert_finished_alike(run, reference)

    attempts = {}
    for point in chosen(shard, number + MORE, fault):
        # The later the first one hangs, the less is left for the other to do.
        hangs_at = random.Random(f"{fault} {point}").randrange(max(1, number - point))
        attempts[f"{hangs_at} {point}"] = lambda h=hangs_at, p=point: attempt(p, h)
    failures = failures_of(attempts, run)
    record_property(f"{fault}, two holders", {"tried": struck, "failed": len(failures)})
    assert failures == {}


def assert_first_left_it_alone(first: Ended) -> None:
    assert first.exit_code in (EXIT_LOST, EXIT_HELD, EXIT_DONE), first
    assert "Traceback" not in first.output
    assert (first.exit_code == EXIT_LOST) == ("has taken over" in first.output), first


@pytest.mark.faults
@pytest.mark.parametrize("shard", range(NUM_SHARDS))
@pytest.mark.parametrize("is_forced", [True, False], ids=["forced", "unforced"])
def test_a_command_that_was_taken_over_leaves_its_successor_undisturbed(
    is_forced: bool,
    shard: int,
    whole: tuple[RunDirectory, int],
    run: Path,
    record_property: Record,
) -> None:
    """Forced: both stop before a change. Unforced: the clock alone decides where they are."""
    reference, number = whole
    lost = 0
    chance = random.Random(f"{is_forced} {shard}")

    def attempt(first: float, second: float) -> None:
        nonlocal lost
        run.mkdir()
        write_identity(run, CONFIG)
        if is_forced:
            points = int(first * number), int(second * number)
            found = taken_over(run, points[0], stopped_at(points[1]), is_command=True)
        else:
            # The other one needs a moment to notice that the lease is over.
            found = stopped_past_its_lease(run, first / 2, 0.2 + second / 2)
        assert_first_left_it_alone(found.first)
        lost += found.first.exit_code == EXIT_LOST
        if found.first.exit_code == EXIT_LOST:
            assert found.second.exit_code == EXIT_DONE, found
        assert found.second.exit_code in (EXIT_DONE, EXIT_HELD), found
        assert_finished_alike(run, reference)

    pairs = [(chance.random(), chance.random()) for _ in range(NUM_TAKEOVERS // NUM_SHARDS)]
    failures = failures_of({str(p): lambda p=p: attempt(*p) for p in pairs}, run)
    name = f"takeovers, {'forced' if is_forced else 'unforced'}"
    counts = {"tried": len(pairs), "ended with the lease lost": lost, "failed": len(failures)}
    record_property(name, counts)
    assert failures == {}
