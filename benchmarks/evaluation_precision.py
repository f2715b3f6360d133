"""Which precision evaluation needs: `python benchmarks/evaluation_precision.py RUN [STEP …]`.

Scores the same weights, rows and random numbers with matrix products in float64, float32, TF32 (on
a GPU) and bfloat16 autocast, and prints the epistemic uncertainty each gives. The error against
float64 is the floor under which that precision sees nothing.
"""

import copy
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from epigrok.evaluation import EvaluationSet, evaluation_sets, score_posterior
from epigrok.model import Network
from epigrok.posteriors import WeightNoise
from epigrok.runs.run import Run, open_run

SCALES = (0.001, 0.01, 0.03, 0.1)
NUM_ROWS, NUM_SAMPLES = 256, 16


@contextmanager
def products(kind: str, device: torch.device) -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if kind == "tf32" else "highest")
    try:
        with torch.autocast(device.type, torch.bfloat16, enabled=kind == "bfloat16"):
            yield
    finally:
        torch.set_float32_matmul_precision(before)


def epistemic(
    model: Network, sets: dict[str, EvaluationSet], scale: float, kind: str
) -> dict[str, float]:
    device = next(model.parameters()).device
    used = copy.deepcopy(model).double() if kind == "float64" else model
    with products(kind, device), torch.compiler.set_stance("force_eager"):
        scores = score_posterior(used, WeightNoise.relative(used, scale), sets, NUM_SAMPLES)
    return {split: of_split.summary()["epistemic_final"] for split, of_split in scores.items()}


def compare(run: Run, step: int, device: torch.device) -> None:
    model, family = run.model(step, device), run.family(device)
    sets = {k: v.first(NUM_ROWS) for k, v in evaluation_sets(run.config, family).items()}
    kinds = ("float64", "float32", *(("tf32",) if device.type == "cuda" else ()), "bfloat16")
    print(f"\nstep {step}\n{'split':<10}{'noise':>7}" + "".join(f"{kind:>12}" for kind in kinds))
    for scale in SCALES:
        found = {kind: epistemic(model, sets, scale, kind) for kind in kinds}
        for split in sets:
            values = "".join(f"{found[kind][split]:12.3e}" for kind in kinds)
            print(f"{split:<10}{scale:>7g}{values}")


def main(arguments: list[str]) -> None:
    run = open_run(arguments[0])
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    print(f"epistemic uncertainty of the final answer, nats; {run.config.preset}, {device.type}")
    for step in map(int, arguments[1:]) if arguments[1:] else [run.newest_step()]:
        compare(run, step, device)


if __name__ == "__main__":
    main(sys.argv[1:])
