"""Labels that are coin flips: how often is the monitor fooled?

    python -m benchmarks.detection.coin_flips

Nothing can be learnt here but the training rows, so every announcement is false. Few classes, few
rows and networks that can only just fit them, or that are smooth between rows, are where it errs:
a report of a user found these recipes, after the rule was frozen. Writes coin-flips.csv.
"""

import argparse
import csv
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# One thread, set before torch is loaded.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from benchmarks.detection.pictures import SIZE, glyph_rows
from epigrok.monitor import GrokMonitor

NUM_SEEDS, NUM_STEPS, LOOK_EVERY = 8, 1000, 25
FOLDER = Path(__file__).resolve().parents[2] / "docs/results/detection"


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A network, and how many rows and classes it learns by heart."""

    num_rows: int
    hidden: tuple[int, ...] = ()
    activation: Callable[[], nn.Module] = nn.ReLU
    num_classes: int = 2
    num_features: int | None = None
    """Gaussian inputs of so many dimensions; None are pictures of digits."""
    lr: float = 1e-3


RECIPES = {
    "logistic regression, 100 features": Recipe(num_rows=170, num_features=100, lr=0.03),
    "logistic regression, pictures": Recipe(num_rows=220, lr=0.03),
    "2 layers of ReLU, pictures": Recipe(num_rows=150, hidden=(128,) * 2),
    "5 layers of ReLU, pictures": Recipe(num_rows=150, hidden=(128,) * 5),
    "2 layers of GELU, pictures": Recipe(num_rows=150, hidden=(128,) * 2, activation=nn.GELU),
    "4 layers of GELU, pictures": Recipe(num_rows=150, hidden=(128,) * 4, activation=nn.GELU),
    "5 layers of tanh, pictures": Recipe(num_rows=150, hidden=(128,) * 5, activation=nn.Tanh),
    "4 layers of GELU, 10 classes": Recipe(
        num_rows=150, hidden=(128,) * 4, activation=nn.GELU, num_classes=10
    ),
}


def inputs(recipe: Recipe, seed: int, number: int) -> Tensor:
    """Rows of a recipe; more of them begin with the same."""
    if recipe.num_features is not None:
        return torch.randn(number, recipe.num_features, generator=torch.manual_seed(seed))
    pictures, _ = glyph_rows(np.random.default_rng(seed), number, 0.3)
    return torch.from_numpy(pictures).float().flatten(1)


def network(recipe: Recipe) -> nn.Sequential:
    widths = (recipe.num_features or SIZE**2, *recipe.hidden)
    layers: list[nn.Module] = []
    for width, following in zip(widths, widths[1:]):
        layers += [nn.Linear(width, following), recipe.activation()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], recipe.num_classes))


def announced_step(recipe: Recipe, seed: int) -> tuple[int | None, float, float]:
    """When the monitor first says *generalised*, the last training accuracy and the last ratio."""
    x, held_out = inputs(recipe, seed, recipe.num_rows), inputs(recipe, 1000 + seed, 512)
    torch.manual_seed(seed)
    labels = torch.randint(recipe.num_classes, (recipe.num_rows,))
    model = network(recipe)
    optimiser = torch.optim.AdamW(model.parameters(), lr=recipe.lr)
    monitor = GrokMonitor(model, seen=x, watched={"held out": held_out})
    for step in range(1, NUM_STEPS + 1):
        optimiser.zero_grad()
        logits = model(x)
        cross_entropy(logits, labels).backward()
        optimiser.step()
        if step % LOOK_EVERY == 0:
            accuracy = float((logits.argmax(dim=1) == labels).float().mean())
            reading = monitor.update(step, train_accuracy=accuracy)
    steps = [event.step for event in monitor.events if event.state == "generalised"]
    return next(iter(steps), None), accuracy, reading["held out"].tolerance_ratio


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=FOLDER / "coin-flips.csv")
    with parser.parse_args().out.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("recipe", "seed", "announced at", "training accuracy", "ratio"))
        for name, recipe in RECIPES.items():
            for seed in range(NUM_SEEDS):
                step, accuracy, ratio = announced_step(recipe, seed)
                told = "" if step is None else step
                writer.writerow((name, seed, told, f"{accuracy:.3f}", f"{ratio:.2f}"))
                file.flush()


if __name__ == "__main__":
    main()
