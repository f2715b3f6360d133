"""Labels that are coin flips: how often is the monitor fooled?

    python -m benchmarks.detection.coin_flips

Nothing can be learnt here but the training rows, so every announcement is false. The monitor errs
where there are few classes, few rows, and networks that can only just fit them, are smooth between
them, or hardly move between them. Several monitors look at each run: as it is, reading more rows,
and without one clause each. Writes coin-flips.csv.
"""

import argparse
import csv
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

# One thread, set before torch is loaded.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.detection.kinds.networks import Transformer
from benchmarks.detection.kinds.pictures import SIZE, glyph_rows
from benchmarks.detection.training import loss_of
from benchmarks.detection.watch import WAYS
from epigrok.monitor import GrokMonitor, MonitorSettings

NUM_SEEDS, NUM_STEPS, LOOK_EVERY = 8, 1000, 25
NUM_LETTERS, LENGTH = 12, 6
COLUMNS = (
    "recipe", "training rows", "seed", "way", "announced at", "last state", "training accuracy",
    "ratio",
)  # fmt: skip
MONITORS = {
    **{
        way: MonitorSettings(rule=WAYS[way].rule)
        for way in ("monitor", "without predictability", "without answers before the fit")
    },
    "reading 1,024 rows": MonitorSettings(num_rows=1024),
}
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
    weights: float = 1.0
    """What PyTorch's initial weights are multiplied by."""
    loss: Literal["cross entropy", "squares"] = "cross entropy"


_wide = partial(Recipe, num_rows=150, hidden=(256,) * 2, num_features=100, lr=3e-4, loss="squares")
"""Large weights, so that a network hardly moves between its rows while it learns them."""
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
    "2 layers of ReLU, weights x 4": _wide(activation=nn.ReLU, weights=4.0),
    "2 layers of tanh, weights x 10": _wide(activation=nn.Tanh, weights=10.0),
    "2 layers of ReLU, weights x 10, 5 classes": _wide(
        activation=nn.ReLU, weights=10.0, num_classes=5
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
    model = nn.Sequential(*layers, nn.Linear(widths[-1], recipe.num_classes))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(recipe.weights)
    return model


def watched_run(recipe: Recipe, seed: int) -> Iterator[dict[str, Any]]:
    """Train once under all monitors, and tell of each when it was first fooled, if it was."""
    x, held_out = inputs(recipe, seed, recipe.num_rows), inputs(recipe, 1000 + seed, 512)
    torch.manual_seed(seed)
    labels = torch.randint(recipe.num_classes, (recipe.num_rows,))
    model = network(recipe)
    optimiser = torch.optim.AdamW(model.parameters(), lr=recipe.lr)
    monitors = {
        way: GrokMonitor(model, seen=x, watched={"held out": held_out}, settings=settings)
        for way, settings in MONITORS.items()
    }
    for step in range(1, NUM_STEPS + 1):
        optimiser.zero_grad()
        loss_of(model, x, labels, recipe.loss).backward()
        optimiser.step()
        if step % LOOK_EVERY == 0:
            with torch.no_grad():
                accuracy = float((model(x).argmax(dim=1) == labels).float().mean())
            for monitor in monitors.values():
                monitor.update(step, train_accuracy=accuracy)
    for way, monitor in monitors.items():
        steps = [event.step for event in monitor.events if event.state == "generalised"]
        last = monitor.readings[-1]["held out"]
        yield {
            "training rows": recipe.num_rows,
            "seed": seed,
            "way": way,
            "announced at": next(iter(steps), None),
            "last state": last.state,
            "training accuracy": f"{accuracy:.3f}",
            "ratio": f"{last.tolerance_ratio:.2f}",
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=FOLDER / "coin-flips.csv")
    parser.add_argument("--recipes", nargs="+", choices=RECIPES, default=list(RECIPES))
    options = parser.parse_args()
    with options.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for name in options.recipes:
            for seed in range(NUM_SEEDS):
                for row in watched_run(RECIPES[name], seed):
                    writer.writerow({"recipe": name, **row})
                file.flush()


if __name__ == "__main__":
    main()
