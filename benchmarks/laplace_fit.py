"""Speed of the last-layer Laplace fit: `python benchmarks/laplace_fit.py`, beside `laplace-torch`.

Both fit a Kronecker-factored posterior to the same cached features in the same process, one after
the other; best of three after a warm-up, and once for batches of 1, which take half a minute.
`laplace-torch` (tests/oracles.txt) is called as it comes, `Laplace(model, "classification")`, on a
model whose features are its inputs. Its time depends on the batch size of the loader it is given;
1 is a `DataLoader`'s default. Then: what bounds the fit, and how far single precision would move
the uncertainty. Set `OMP_NUM_THREADS=1` to compare the work rather than the threads.
"""

import time
import warnings
from collections.abc import Callable
from dataclasses import replace

import torch
from laplace import Laplace
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from epigrok.posteriors import Head, LastLayerLaplace, head_curvature
from epigrok.random_streams import integers, normal, stream_key
from epigrok.uncertainty import EntropyStream, log_probabilities

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
    chunks = zip(features.split(CHUNK), answers.split(CHUNK))
    curvature = head_curvature(Head(weight_CD=weight), chunks)
    return LastLayerLaplace.from_curvature(curvature, PRIOR_PRECISION)


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


def parts_of_the_fit(width: int) -> None:
    """What bounds the fit, and what single precision would save."""
    features = normal(stream_key(0, "features"), (NUM_TOKENS, width))
    matrix = features.double().T @ features.double()
    print(f"\nparts at width {width}: double precision, single precision")
    for name, work in (
        ("product of features", lambda dtype: features.to(dtype).T @ features.to(dtype)),
        ("eigenvectors", lambda dtype: torch.linalg.eigh(matrix.to(dtype))),
    ):
        double, single = (
            best_of_three(lambda work=work, dtype=dtype: work(dtype))
            for dtype in (torch.float64, torch.float32)
        )
        print(f"  {name:<20} {double:.4f} s, {single:.4f} s", flush=True)


def epistemic_of(posterior: LastLayerLaplace, features: Tensor) -> Tensor:
    stream = EntropyStream()
    for index in range(16):
        stream.add(log_probabilities(posterior.head_logits(features, index)))
    return stream.decomposition().epistemic


def single_precision(width: int) -> None:
    """How far single precision moves the uncertainty, in nats, at the worst of 256 answers."""
    print(
        "\nmean of features, spread of their scales, prior: EU, moved by product, by eigenvectors"
    )
    weight = normal(stream_key(0, "weight"), (NUM_CLASSES, width)) / width**0.5
    answers = integers(stream_key(0, "answers"), NUM_CLASSES, (NUM_TOKENS,))
    for mean, decades, prior in ((0.0, 0.0, 1.0), (3.0, 0.0, 1.0), (3.0, 2.0, 0.01)):
        features = normal(stream_key(0, "features"), (NUM_TOKENS, width))
        features = features * torch.logspace(0.0, -decades, width) + mean
        chunks = zip(features.split(CHUNK), answers.split(CHUNK))
        curvature = head_curvature(Head(weight_CD=weight), chunks)
        product = sum((part.T @ part).double() for part in features.split(CHUNK)) / NUM_TOKENS
        exact = LastLayerLaplace.from_curvature(curvature, prior)
        moved = LastLayerLaplace.from_curvature(
            replace(curvature, feature_factor_DD=product), prior
        )
        values, basis = torch.linalg.eigh(curvature.feature_factor_DD.float())
        precision = curvature.class_eigen[0][:, None] * values.double().clamp_min(0.0) + prior
        turned = replace(exact, feature_basis_DD=basis.double(), precision_CD=precision)
        expected, *found = (epistemic_of(p, features[:256]) for p in (exact, moved, turned))
        worst = ", ".join(f"{(each - expected).abs().max().item():.1e}" for each in found)
        print(f"  {mean:g}, {decades:g} decades, {prior:g}: {expected.mean().item():.3f}, {worst}")


def main() -> None:
    warnings.simplefilter("ignore")
    print(f"{NUM_TOKENS} answers, {NUM_CLASSES} classes, {torch.get_num_threads()} thread(s)")
    for width in WIDTHS:
        compare(width)
    parts_of_the_fit(WIDTHS[-1])
    single_precision(WIDTHS[-1])


if __name__ == "__main__":
    main()
