"""Write the table of verdicts.

    PYTHONPATH=. python -m benchmarks.verdicts.table runs/paper-small \
        --fixed-ess runs/paper-small-fixed-ess --out docs/results/verdicts.csv
"""

import argparse
import csv
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

from benchmarks.verdicts import claims
from benchmarks.verdicts.between_methods import COMPARISONS, CONTROL
from benchmarks.verdicts.claims import NOT_TESTED, Claim
from benchmarks.verdicts.evidence import methods_of
from epigrok.files import write_file

CLAIMS = (
    Claim(
        "collapse",
        "Abstract; contributions (2); conclusion",
        "EU collapses sharply when the model groks",
        claims.collapse,
    ),
    Claim(
        "collapse before",
        "Figure 1, caption",
        "EU collapses before the generalisation transition",
        claims.collapse_before,
    ),
    Claim(
        "peak before",
        "Empirical trajectory, caption; takeaway",
        "the EU peak occurs before the accuracy threshold is exceeded",
        claims.peak_before,
    ),
    Claim(
        "diagnostic",
        "Abstract; task diversity, text",
        "EU is a label-free diagnostic of generalisation",
        claims.diagnostic,
    ),
    Claim(
        "unseen tasks",
        "Figure 2, caption and text",
        "OOD Train accuracy is high at T = 256 and 512 for any training fraction",
        claims.unseen_tasks_at_many_tasks,
    ),
    Claim(
        "only many tasks",
        "Task diversity, text",
        "OOD Val generalisation emerges only at the highest task counts",
        claims.only_many_tasks,
    ),
    Claim(
        "only large fractions",
        "Figure 2, caption and text",
        "IVON reaches competitive OOD Val accuracy only at the highest fractions",
        claims.only_large_fractions,
    ),
    Claim(
        "mostly epistemic",
        "Figure 3, text",
        "at low task diversity TU is dominated by EU on all splits",
        claims.mostly_epistemic,
    ),
    Claim(
        "EU drops",
        "Figure 3, text",
        "EU drops sharply at T = 256 and 512",
        claims.uncertainty_drops,
    ),
    Claim("AU stays", "Figure 3, text", "meanwhile AU remains high", claims.aleatoric_stays),
    Claim(
        "tracks accuracy",
        "Figure 3, text",
        "the fall of EU tracks the transition in the accuracy maps",
        claims.tracks_accuracy,
    ),
    Claim(
        "longer is better",
        "Context length, caption and text",
        "accuracy improves monotonically with context size on all splits",
        claims.accuracy_grows,
    ),
    Claim(
        "AU falls",
        "Context length, caption and text",
        "AU decreases monotonically with more context",
        claims.aleatoric_falls,
    ),
    Claim(
        "floor",
        "Context length, text",
        "AU converges to a floor (tested: the exact predictor's)",
        claims.aleatoric_floor,
    ),
    Claim(
        "EU rises, then falls",
        "Context length, caption and text",
        "EU increases at small context sizes, then decreases sharply",
        claims.rises_then_falls,
    ),
    Claim(
        "noise hurts",
        "Context noise, text",
        "accuracy degrades smoothly with noise on all splits",
        claims.accuracy_degrades,
    ),
    Claim(
        "noise raises AU",
        "Context noise, caption and text",
        "AU rises with the noise level",
        claims.aleatoric_rises,
    ),
    Claim(
        "noise raises EU",
        "Context noise, caption and text",
        "EU increases with noise",
        claims.epistemic_rises,
    ),
)
COLUMNS = ("claim", "place", "statement", "method", "verdict", "number", "command")
Row = dict[str, str]


def verdicts(grid: Path, fixed_ess: Path | None = None) -> Iterator[Row]:
    """A row per claim and method, then those between methods, then the control."""
    methods = methods_of(grid)
    command = f"python -m benchmarks.verdicts.table {grid.name}"
    for claim in CLAIMS:
        for method in methods:
            found = claim.rule(method)
            yield _row(claim, method.name, found, command)
    pair = [[m for m in methods if m.is_ivon == is_ivon] for is_ivon in (False, True)]
    for comparison in COMPARISONS:
        found = comparison.rule(pair[0][0], pair[1][0]) if all(pair) else NOT_TESTED
        yield _row(comparison, "both", found, command)
    is_there = bool(pair[1]) and fixed_ess is not None
    found = CONTROL.rule(pair[1][0], methods_of(fixed_ess)[0]) if is_there else NOT_TESTED
    yield _row(CONTROL, "IVON", found, f"{command} --fixed-ess {fixed_ess and fixed_ess.name}")


def _row(claim: object, method: str, found: claims.Finding, command: str) -> Row:
    named = {name: getattr(claim, name) for name in ("place", "statement")}
    values = {"verdict": found.verdict, "number": found.number, "command": command}
    return {"claim": claim.name, **named, "method": method, **values}  # type: ignore[attr-defined]


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
