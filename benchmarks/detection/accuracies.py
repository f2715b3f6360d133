"""Accuracies along the runs of a role, and nothing else: recipes are tuned by these alone.

python -m benchmarks.detection.accuracies --role "unseen by rule 7" --processes 16
"""

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

# One thread per process, set before torch is loaded.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from torch import Tensor, nn

from benchmarks.detection.kinds.suite import SUITE
from benchmarks.detection.training import ROLES, looks


@torch.no_grad()
def generality(model: nn.Module, x: Tensor, y: Tensor) -> float:
    """Balanced accuracy above chance."""
    answers = model(x).argmax(dim=-1)
    classes = y.unique()
    balanced = sum(float((answers[y == c] == c).double().mean()) for c in classes) / len(classes)
    if len(classes) == 1:  # no chance to be above
        return balanced
    return (balanced - 1.0 / len(classes)) / (1.0 - 1.0 / len(classes))


def line(name: str, seed: int) -> str:
    """Step, generality on training rows / on each watched set, at a few looks."""
    torch.set_num_threads(1)
    found = []
    for look in looks(SUITE[name], seed, 10):
        look.model.eval()
        x, y = look.data.train
        sets = [(x[:2048], y[:2048]), *look.watched.values()]
        numbers = [f"{generality(look.model, *rows):.2f}" for rows in sets]
        found.append(f"{look.step}:{'/'.join(numbers)}")
    return f"{name}-{seed} ({SUITE[name].truth}) {look.train_seconds:.0f} s  {'  '.join(found)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--role", choices=ROLES, required=True)
    parser.add_argument("--names", nargs="*")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    names = [
        name
        for name, spec in SUITE.items()
        if spec.role == options.role and (not options.names or name in options.names)
    ]
    runs = [(name, seed) for seed in range(options.seeds) for name in names]
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
        for found in pool.map(line, *zip(*runs)):
            print(found, flush=True)


if __name__ == "__main__":
    main()
