"""Labels that are coin flips: how often is the monitor fooled?

    python -m benchmarks.detection.coin_flips

Nothing can be learnt here but the training rows, so every announcement is false. The monitor errs
where there are few classes, few rows, and networks that can only just fit them or are smooth
between them. Writes coin-flips.csv. With `--without-predictability` the
monitor does without that clause, and with `--num-rows` it reads more rows of each set.
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

from benchmarks.detection.kinds.networks import Transformer
from benchmarks.detection.kinds.pictures import SIZE, glyph_rows
from benchmarks.detection.watch import WAYS
from epigrok.monitor import GrokMonitor, MonitorSettings

NUM_SEEDS, NUM_STEPS, LOOK_EVERY = 8, 1000, 25
NUM_LETTERS, LENGTH = 12, 6
COLUMNS = (
    "recipe", "training rows", "seed", "announced at", "last state", "training accuracy", "ratio",
)  # fmt: skip
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
    has_strings: bool = False
    """Random strings of six letters, and a transformer of one layer to read them."""
    lr: float = 1e-3


RECIPES = {
    "logistic regression, 100 features": Recipe(num_rows=170, num_features=100, lr=0.03),
    # More rows than a monitor reads, so that watched answers hardly follow from those it knows.
    "logistic regression, 600 rows": Recipe(num_rows=600, num_features=400, lr=0.03),
    "logistic regression, 2,000 rows": Recipe(num_rows=2000, num_features=1340, lr=0.03),
    "logistic regression, pictures": Recipe(num_rows=220, lr=0.03),
    "2 layers of ReLU, pictures": Recipe(num_rows=150, hidden=(128,) * 2),
    "5 layers of ReLU, pictures": Recipe(num_rows=150, hidden=(128,) * 5),
    "2 layers of GELU, pictures": Recipe(num_rows=150, hidden=(128,) * 2, activation=nn.GELU),
    "4 layers of GELU, pictures": Recipe(num_rows=150, hidden=(128,) * 4, activation=nn.GELU),
    "5 layers of tanh, pictures": Recipe(num_rows=150, hidden=(128,) * 5, activation=nn.Tanh),
    "4 layers of GELU, 10 classes": Recipe(
        num_rows=150, hidden=(128,) * 4, activation=nn.GELU, num_classes=10
    ),
    "transformer, strings": Recipe(num_rows=250, has_strings=True, lr=2e-3),
    "transformer, strings, 3 classes": Recipe(
        num_rows=250, has_strings=True, num_classes=3, lr=2e-3
    ),
    "transformer, strings, 10 classes": Recipe(
        num_rows=250, has_strings=True, num_classes=10, lr=2e-3
    ),
}


def inputs(recipe: Recipe, seed: int, number: int) -> Tensor:
    """Rows of a recipe; more of them begin with the same."""
    if recipe.has_strings:
        return torch.randint(NUM_LETTERS, (number, LENGTH), generator=torch.manual_seed(seed))
    if recipe.num_features is not None:
        return torch.randn(number, recipe.num_features, generator=torch.manual_seed(seed))
    pictures, _ = glyph_rows(np.random.default_rng(seed), number, 0.3)
    return torch.from_numpy(pictures).float().flatten(1)


def network(recipe: Recipe) -> nn.Module:
    if recipe.has_strings:
        model = Transformer(LENGTH, recipe.num_classes, vocabulary=NUM_LETTERS, width=48)
        # As `nn.Embedding` begins, and so most transformers that people write.
        nn.init.normal_(model.embed.weight)
        return model
    widths = (recipe.num_features or SIZE**2, *recipe.hidden)
    layers: list[nn.Module] = []
    for width, following in zip(widths, widths[1:]):
        layers += [nn.Linear(width, following), recipe.activation()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], recipe.num_classes))


def announced_step(
    recipe: Recipe, seed: int, settings: MonitorSettings
) -> tuple[int | None, str, float, float]:
    """When the monitor first says *generalised*; its last state, training accuracy and ratio."""
    x, held_out = inputs(recipe, seed, recipe.num_rows), inputs(recipe, 1000 + seed, 512)
    torch.manual_seed(seed)
    labels = torch.randint(recipe.num_classes, (recipe.num_rows,))
    model = network(recipe)
    optimiser = torch.optim.AdamW(model.parameters(), lr=recipe.lr)
    monitor = GrokMonitor(model, seen=x, watched={"held out": held_out}, settings=settings)
    for step in range(1, NUM_STEPS + 1):
        optimiser.zero_grad()
        logits = model(x)
        cross_entropy(logits, labels).backward()
        optimiser.step()
        if step % LOOK_EVERY == 0:
            accuracy = float((logits.argmax(dim=1) == labels).float().mean())
            reading = monitor.update(step, train_accuracy=accuracy)
    steps = [event.step for event in monitor.events if event.state == "generalised"]
    last = reading["held out"]
    return next(iter(steps), None), str(last.state), accuracy, last.tolerance_ratio


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=FOLDER / "coin-flips.csv")
    parser.add_argument("--recipes", nargs="+", choices=RECIPES, default=list(RECIPES))
    parser.add_argument("--without-predictability", action="store_true")
    parser.add_argument("--num-rows", type=int, default=MonitorSettings().num_rows)
    options = parser.parse_args()
    way = WAYS["without predictability" if options.without_predictability else "monitor"]
    settings = MonitorSettings(num_rows=options.num_rows, rule=way.rule)
    with options.out.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for name in options.recipes:
            for seed in range(NUM_SEEDS):
                recipe = RECIPES[name]
                step, state, accuracy, ratio = announced_step(recipe, seed, settings)
                told, rows = "" if step is None else step, recipe.num_rows
                writer.writerow((name, rows, seed, told, state, f"{accuracy:.3f}", f"{ratio:.2f}"))
                file.flush()


if __name__ == "__main__":
    main()
