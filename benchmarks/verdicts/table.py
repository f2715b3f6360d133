"""Write the table of verdicts.

    PYTHONPATH=. python -m benchmarks.verdicts.table runs/paper-small \
        --fixed-ess runs/paper-small-fixed-ess --out docs/results/verdicts.csv
"""

import argparse
import csv
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

from benchmarks.verdicts import over_contexts, over_grid, over_training
from benchmarks.verdicts.between_methods import COMPARISONS, CONTROL, Comparison
from benchmarks.verdicts.claims import NOT_TESTED, Claim, Finding
from benchmarks.verdicts.evidence import methods_of
from epigrok.files import write_file

CLAIMS = (*over_training.CLAIMS, *over_grid.CLAIMS, *over_contexts.CLAIMS)
COLUMNS = ("claim", "place", "statement", "method", "runs", "verdict", "number", "command")
Row = dict[str, str]


def verdicts(grid: Path, fixed_ess: Path | None = None) -> Iterator[Row]:
    """A row per claim and method, then those between methods, then the control."""
    methods = methods_of(grid)
    command = f"python -m benchmarks.verdicts.table {grid.name}"
    for claim in CLAIMS:
        for method in methods:
            runs = method.runs_text(claim.axis)
            yield _row(claim, (method.name, runs), claim.judge(method), command)
    laplace, ivon = (
        next((m for m in methods if m.is_ivon == is_ivon), None) for is_ivon in (False, True)
    )
    for comparison in COMPARISONS:
        found, runs = NOT_TESTED, ""
        if laplace is not None and ivon is not None:
            found = comparison.judge(laplace, ivon)
            runs = f"{laplace.runs_text(comparison.axis)}; {ivon.runs_text(comparison.axis)}"
        yield _row(comparison, ("both", runs), found, command)
    found, runs = NOT_TESTED, ""
    if ivon is not None and fixed_ess is not None:
        fixed = methods_of(fixed_ess)[0]
        found, runs = CONTROL.judge(ivon, fixed), f"{ivon.runs_text()}; {fixed.runs_text()}"
    yield _row(
        CONTROL, ("IVON", runs), found, f"{command} --fixed-ess {fixed_ess and fixed_ess.name}"
    )


def _row(claim: Claim | Comparison, on: tuple[str, str], found: Finding, command: str) -> Row:
    return {
        "claim": claim.name,
        "place": claim.place,
        "statement": claim.statement,
        **dict(zip(("method", "runs"), on)),
        "verdict": found.verdict,
        "number": found.number,
        "command": command,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("grid", type=Path)
    parser.add_argument("--fixed-ess", type=Path)
    parser.add_argument("--out", type=Path)
    parsed = parser.parse_args()
    rows = list(verdicts(parsed.grid, parsed.fixed_ess))
    if parsed.out is not None:
        text = StringIO()
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        write_file(parsed.out, text.getvalue())
    for row in rows:
        print(f"| {row['statement']} | {row['method']} | {row['verdict']} | {row['number']} |")


if __name__ == "__main__":
    main()
