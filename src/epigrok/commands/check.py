"""`epigrok check DIR`: check that a run or a sweep is complete and undamaged, to the byte."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from epigrok.commands.arguments import parse
from epigrok.exit_codes import EXIT_DONE, EXIT_FAILED
from epigrok.records.checking import check
from epigrok.records.directory import RunDirectory
from epigrok.records.zoo import unpack_if_zoo
from epigrok.wording import printable, runs_text


@dataclass(frozen=True, kw_only=True)
class CheckArguments:
    """Check every file of a run or a sweep: format, tables, checkpoints, digests.

    Prints each problem with its file and its remedy, and changes nothing. Exit code: 0 without a
    problem, 1 otherwise.
    """

    directory: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]
    """Directory of a sweep or a run; `zoo:NAME` is a run that comes with the package."""


def main(arguments: Sequence[str]) -> int:
    """Print all problems, or that there are none."""
    parsed = parse(CheckArguments, "check", arguments)
    found = check(unpack_if_zoo(parsed.directory))
    for findings in found.values():
        for finding in findings:
            print(printable(str(finding)))
    num_done = sum(RunDirectory(path).is_done for path in found)
    num_wrong = sum(bool(findings) for findings in found.values())
    verdict = f"something is wrong with {num_wrong}" if num_wrong else "nothing is wrong"
    print(f"{runs_text(len(found))}, {num_done} finished: {verdict}")
    return EXIT_FAILED if num_wrong else EXIT_DONE
