"""A run is disturbed at every single change it makes to its directory, and ends up the same.

The sample that the default suite takes is every fifteenth change; `make test-faults` tries all.
"""

import errno
import random
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from injection import (
    Ended,
    Hook,
    Process,
    Takeover,
    failing_at,
    finish,
    killed_at,
    num_changes,
    stopped_past_its_lease,
    taken_over,
)
from sweep_results import assert_same_run

from epigrok.exit_codes import EXIT_DONE, EXIT_FAILED, EXIT_HELD, EXIT_LOST
from epigrok.records.checking import check_run
from epigrok.records.directory import RunDirectory

NUM_SHARDS = 4
EVERY = 15
"""Of the default suite."""
FAULTS = {
    "killed": killed_at,
    "disk full from then on": lambda point: failing_at(point, errno.ENOSPC, for_good=True),
    "input or output error": lambda point: failing_at(point, errno.EIO),
    "too many open files": lambda point: failing_at(point, errno.EMFILE),
}
SAMPLE_OR_ALL = [
    pytest.param(range(shard * 4, 10**6, EVERY * len(FAULTS)), id=f"sample-{shard}")
    for shard in range(1)
] + [
    pytest.param(range(shard, 10**6, NUM_SHARDS), marks=pytest.mark.faults, id=f"all-{shard}")
    for shard in range(NUM_SHARDS)
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunDirectory, int]:
    """A run that nobody disturbs, and the number of its changes."""
    path = tmp_path_factory.mktemp("whole") / "run"
    number = num_changes(path)
    return RunDirectory(path), number


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "run"
    shutil.rmtree(tmp_path)


def assert_finished_alike(run: Path, whole: RunDirectory, was_done: bool) -> None:
    assert_same_run(RunDirectory(run), whole)
    assert check_run(RunDirectory(run)) == []
    if was_done:
        # Nobody touches a finished run again, not even to sweep up.
        return
    left = sorted(path.name for path in run.iterdir() if path.name.startswith((".work", "lease")))
    assert left == []


@pytest.mark.parametrize("points", SAMPLE_OR_ALL)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_run_that_is_disturbed_anywhere_goes_on_as_if_nothing_had_been(
    fault: str, points: range, whole: tuple[RunDirectory, int], run: Path
) -> None:
    reference, number = whole
    tried = 0
    for point in points:
        if point >= number:
            break
        disturbed(run, FAULTS[fault](point), fault)
        was_done = RunDirectory(run).is_done
        assert finish(run) == Ended(EXIT_DONE, ""), f"{fault} at change {point}"
        assert_finished_alike(run, reference, was_done)
        shutil.rmtree(run)
        tried += 1
    assert tried > 0


def disturbed(run: Path, hook: Hook, fault: str) -> None:
    ended = Process(run, hook).wait()
    assert ended is not None
    if fault == "killed":
        assert ended.exit_code is None
    else:
        # What fails after the end of the work is not always worth a failure.
        assert ended.exit_code in (EXIT_FAILED, EXIT_DONE), ended.output


@pytest.mark.parametrize("points", SAMPLE_OR_ALL)
def test_a_run_that_hangs_anywhere_does_not_disturb_its_successor(
    points: range, whole: tuple[RunDirectory, int], run: Path
) -> None:
    reference, number = whole
    tried = 0
    for point in points:
        if point >= number:
            break
        # Where the successor is when the first one wakes up; past its end in a few cases.
        awake = random.Random(point).randrange(number + 10)
        assert_undisturbed(taken_over(run, point, awake), f"{point} {awake}")
        was_done = RunDirectory(run).is_done
        finished = finish(run)
        assert finished == Ended(EXIT_DONE, ""), f"{point} {awake} {finished}"
        assert_finished_alike(run, reference, was_done)
        shutil.rmtree(run)
        tried += 1
    assert tried > 0


def assert_undisturbed(found: Takeover, where: str) -> None:
    assert found.second.exit_code in (EXIT_DONE, EXIT_HELD), f"{where}: {found}"
    if found.second.exit_code == EXIT_HELD:
        # The first woke up before it had lost anything, and went on.
        assert found.first.exit_code == EXIT_DONE, f"{where}: {found}"
    assert found.first.exit_code in (EXIT_LOST, EXIT_HELD, EXIT_DONE), f"{where}: {found}"
    if found.first.exit_code == EXIT_LOST:
        assert "has taken over" in found.first.output


NUM_TRIES = 60


@pytest.mark.faults
@pytest.mark.parametrize("shard", range(2))
def test_a_run_stopped_past_its_lease_at_any_moment_does_not_disturb_its_successor(
    shard: int, whole: tuple[RunDirectory, int], run: Path
) -> None:
    moments = random.Random(shard)
    for _ in range(NUM_TRIES // 2):
        delays = moments.uniform(0.0, 0.5), moments.uniform(0.0, 0.5)
        assert_undisturbed(stopped_past_its_lease(run, *delays), str(delays))
        was_done = RunDirectory(run).is_done
        assert finish(run) == Ended(EXIT_DONE, ""), delays
        assert_finished_alike(run, whole[0], was_done)
        shutil.rmtree(run)
