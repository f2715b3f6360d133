"""Is the standard error of the ratio right on trained networks?

    python -m benchmarks.detection.coverage records --out readings/coverage.csv

The stored rows of a look are cut into two halves that share nothing, neither rows nor draws. Their
two log ratios should differ by two joint standard errors in 5 % of looks.
"""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.detection import records as stored
from benchmarks.detection.tables import write
from epigrok.monitor import ToleranceSettings, head_answers, tolerance, tolerance_ratio
from epigrok.monitor.tolerance import ToleranceRatio
from epigrok.posteriors import Head, HeadInputs


def stored_inputs(record: dict[str, Any], index: int, number: int) -> HeadInputs:
    """Features and head of one set at one of the looks at which they were stored."""
    bias = record.get(f"bias:{index}")
    head = Head(
        weight_CD=torch.from_numpy(record[f"weight:{index}"]).float(),
        bias_C=None if bias is None else torch.from_numpy(bias).float(),
    )
    features = torch.from_numpy(record[f"features:{index}:{number}"]).float()
    return HeadInputs(features_ND=features, head=head)


def half_ratio(record: dict[str, Any], index: int, number: int, half: int) -> ToleranceRatio:
    """The ratio from every second row of both sets, with draws of its own."""
    settings = replace(ToleranceSettings(), seed=half)
    taus = []
    for part in (number, 0):
        inputs = stored_inputs(record, index, part)
        inputs = replace(inputs, features_ND=inputs.features_ND[half::2])
        num_classes = len(inputs.head.weight_CD)
        taus.append(tolerance(head_answers(inputs, settings), num_classes, settings))
    return tolerance_ratio(*taus)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("records", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    rows = []
    for name, record in stored.load(*options.records).items():
        for index in record["deep_index"]:
            for number, watched in enumerate(record["meta"]["sets"][1:], start=1):
                one, two = (half_ratio(record, int(index), number, half) for half in (0, 1))
                if one.reason or two.reason:
                    continue
                joint = float(np.hypot(one.log_standard_error, two.log_standard_error))
                rows.append(
                    {
                        "run": name,
                        "watched": watched,
                        "look": int(index),
                        "ratio": one.value,
                        "joint standard error": joint,
                        "deviation": float(np.log(one.value / two.value)) / joint,
                    }
                )
    write(options.out, rows)
    deviation = np.array([row["deviation"] for row in rows])
    print(f"{len(rows)} looks: {(np.abs(deviation) < 2).mean():.3f} within two standard errors, "
          f"root mean square {np.sqrt((deviation**2).mean()):.2f}")  # fmt: skip


if __name__ == "__main__":
    main()
