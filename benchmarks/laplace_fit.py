"""Speed of the last-layer Laplace fit: `python benchmarks/laplace_fit.py`, beside `laplace-torch`.

Both fit a Kronecker-factored posterior to the same cached features in the same process, one after
the other; best of three after a warm-up, and once for batches of 1, which take half a minute.
`laplace-torch` (tests/oracles.txt) is called as it comes, `Laplace(model, "classification")`, on a
model whose features are its inputs. Its time depends on the batch size of the loader it is given;
1 is a `DataLoader`'s default. Set `OMP_NUM_THREADS=1` to compare the work rather than the threads.
"""

import time
import warnings
from collections.abc import Callable

import torch
from laplace import Laplace
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from epigrok.posteriors import LastLayerLaplace, head_curvature
from epigrok.random_streams import integers, normal, stream_key

NUM_TOKENS, NUM_CLASSES = 4096, 29
WIDTHS = (64, 512)
BATCH_SIZES = (1, 32, 256, NUM_TOKENS)
PRIOR_PRECISION = 1.0
CHUNK = 512
"""Answers that we take in at a time, as evaluations on a CPU do."""


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def best_of_three(work: Callable[[], object]) -> float:
    work()
    return min(seconds(work) for _ in range(3))


def our_fit(weight: Tensor, features: Tensor, answers: Tensor) -> LastLayerLaplace:
    curvature = head_curvature(weight, zip(features.split(CHUNK), answers.split(CHUNK)))
    return LastLayerLaplace.fit(curvature, PRIOR_PRECISION)


def their_fit(weight: Tensor, loader: DataLoader) -> Tensor:
    head = nn.Linear(weight.shape[1], weight.shape[0], bias=False)
    head.weight.data = weight.clone()
    model = nn.Sequential(nn.Identity(), head)
    posterior = Laplace(model, "classification", prior_precision=PRIOR_PRECISION)
    posterior.fit(loader)
    return posterior.posterior_precision.logdet()


def compare(width: int) -> None:
    features = normal(stream_key(0, "features"), (NUM_TOKENS, width))
    weight = normal(stream_key(0, "weight"), (NUM_CLASSES, width)) / width**0.5
    answers = integers(stream_key(0, "answers"), NUM_CLASSES, (NUM_TOKENS,))
    ours = best_of_three(lambda: our_fit(weight, features, answers))
    print(f"\nwidth {width}: epigrok {ours:.4f} s")
    data = TensorDataset(features, answers)
    for size in BATCH_SIZES:
        loader = DataLoader(data, batch_size=size)
        measured = seconds if size == 1 else best_of_three
        theirs = measured(lambda loader=loader: their_fit(weight, loader))
        print(
            f"  laplace-torch, batches of {size:>4}: {theirs:>8.4f} s, {theirs / ours:.1f} times "
            "as long",
            flush=True,
        )
    same = our_fit(weight, features, answers).precision_CD.log().sum().item()
    print(f"  log determinants: {same:.2f}, laplace-torch {their_fit(weight, loader).item():.2f}")


def main() -> None:
    warnings.simplefilter("ignore")
    print(f"{NUM_TOKENS} answers, {NUM_CLASSES} classes, {torch.get_num_threads()} thread(s)")
    for width in WIDTHS:
        compare(width)


if __name__ == "__main__":
    main()
