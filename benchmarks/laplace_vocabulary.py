"""Last-layer Laplace over 50,000 classes: `python benchmarks/laplace_vocabulary.py`, on a CPU.

Prints seconds and the largest memory of the process (which holds torch and the network too) of the
fit to 4,096 tokens at width 768, then of the uncertainty of 256 tokens under 16 samples; what the
diagonal loses against the exact curvature where that can be had; and `laplace-torch`
(tests/oracles.txt) with the same diagonal where it can run. `large`, `structures` or
`laplace-torch` as arguments choose among these. Set `OMP_NUM_THREADS=1` to compare the
work rather than the threads.
"""

import resource
import sys
import time
import warnings

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from epigrok import predict
from epigrok.posteriors import DiagonalLaplace, ExactLaplace, LastLayerLaplace
from epigrok.random_streams import integers, normal, stream_key

NUM_TOKENS, NUM_CLASSES, WIDTH, BATCH = 4096, 50_000, 768, 512


def peak_gigabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


class Measured:
    """Seconds by the clock and of the processor, and the largest memory so far."""

    def __enter__(self) -> "Measured":
        self._start, self._start_cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._start
        self.text = (
            f"{self.seconds:.1f} s ({time.process_time() - self._start_cpu:.1f} s of the "
            f"processor), peak {peak_gigabytes():.2f} GB"
        )


def network(num_classes: int, width: int) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, num_classes))


def loader_of(num_tokens: int, num_classes: int, width: int) -> DataLoader:
    inputs = normal(stream_key(0, "inputs"), (num_tokens, width))
    labels = integers(stream_key(0, "labels"), num_classes, (num_tokens,))
    return DataLoader(TensorDataset(inputs, labels), batch_size=BATCH)


def large() -> None:
    model, loader = network(NUM_CLASSES, WIDTH), loader_of(NUM_TOKENS, NUM_CLASSES, WIDTH)
    print(
        f"{NUM_CLASSES} classes, width {WIDTH}, {NUM_TOKENS} tokens; at the start "
        f"{peak_gigabytes():.2f} GB"
    )
    with Measured() as measured:
        posterior = DiagonalLaplace.fit(model, loader)
    print(f"fit: {measured.text}", flush=True)
    inputs = next(iter(loader))[0][:256]
    with Measured() as measured:
        found = predict(model, posterior, inputs, num_samples=16)
    print(f"{found}: {measured.text}", flush=True)


def trained(num_classes: int, width: int, num_tokens: int) -> tuple[nn.Module, DataLoader]:
    """A softmax regression on classes as frequent as words."""
    prior = 1.0 / torch.arange(1, num_classes + 1)
    generator = torch.Generator().manual_seed(0)
    labels = torch.multinomial(prior, num_tokens, replacement=True, generator=generator)
    centres = 0.5 * normal(stream_key(1, "centres"), (num_classes, width))
    inputs = centres[labels] + normal(stream_key(1, "noise"), (num_tokens, width))
    model = nn.Sequential(nn.Identity(), nn.Linear(width, num_classes))
    optimiser = torch.optim.LBFGS(model.parameters(), max_iter=300)

    def loss() -> Tensor:
        optimiser.zero_grad()
        total = cross_entropy(model(inputs), labels, reduction="sum")
        total = total + 0.5 * sum(weights.square().sum() for weights in model.parameters())
        total.backward()
        return total

    optimiser.step(loss)
    return model, DataLoader(TensorDataset(inputs, labels), batch_size=BATCH)


def structures() -> None:
    print("\nEU against the exact curvature (prior precision 1, 64 samples, 256 tokens)")
    print("classes  width  exact EU  diagonal/exact (correlation)  Kronecker/exact (correlation)")
    for num_classes, width, num_tokens in ((10, 16, 500), (50, 24, 2000), (100, 24, 3000)):
        model, loader = trained(num_classes, width, num_tokens)
        inputs = torch.cat([part for part, _ in loader])[:256]
        exact, *others = (
            predict(model, kind.fit(model, loader, prior=1.0), inputs, num_samples=64).epistemic
            for kind in (ExactLaplace, DiagonalLaplace, LastLayerLaplace)
        )
        ratios = "  ".join(
            f"{(other.mean() / exact.mean()).item():.2f} "
            f"({torch.corrcoef(torch.stack([exact, other]))[0, 1].item():.2f})"
            for other in others
        )
        print(f"{num_classes:>7}  {width:>5}  {exact.mean().item():.4f}  {ratios}", flush=True)


def beside_laplace_torch() -> None:
    from laplace import Laplace

    print("\nDiagonal fit beside laplace-torch (512 tokens, width 64; best of three)")
    for num_classes in (30, 100, 300):
        model, loader = network(num_classes, 64), loader_of(512, num_classes, 64)

        def ours(model: nn.Module = model, loader: DataLoader = loader) -> Tensor:
            return DiagonalLaplace.fit(model, loader, prior=1.0).precision_CD.log().sum()

        def theirs(model: nn.Module = model, loader: DataLoader = loader) -> Tensor:
            posterior = Laplace(model, "classification", "last_layer", "diag")
            posterior.fit(loader)
            return posterior.posterior_precision.log().sum()

        seconds, values = [], []
        for work in (ours, theirs):
            times = []
            for _ in range(3):
                start = time.perf_counter()
                value = work()
                times.append(time.perf_counter() - start)
            seconds.append(min(times))
            values.append(value.item())
        print(
            f"{num_classes:>4} classes: {seconds[0]:.4f} s and {seconds[1]:.3f} s, "
            f"{seconds[1] / seconds[0]:.0f} times; log determinants {values[0]:.3f} and "
            f"{values[1]:.3f}",
            flush=True,
        )


def main() -> None:
    warnings.simplefilter("ignore")
    parts = {"large": large, "structures": structures, "laplace-torch": beside_laplace_torch}
    for name in sys.argv[1:] or parts:
        parts[name]()


if __name__ == "__main__":
    main()
