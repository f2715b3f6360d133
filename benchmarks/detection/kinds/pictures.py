"""Small pictures: digits of a 5 × 7 font, moved, blurred and noisy, and geometric shapes."""

import numpy as np
import torch
from torch import Tensor

from benchmarks.detection.kinds.data_sets import Data, Rows

_FONT = """
.###. #...# #..## #.#.# ##..# #...# .###.
..#.. .##.. ..#.. ..#.. ..#.. ..#.. .###.
.###. #...# ....# ...#. ..#.. .#... #####
.###. #...# ....# ..##. ....# #...# .###.
...#. ..##. .#.#. #..#. ##### ...#. ...#.
##### #.... ####. ....# ....# #...# .###.
..##. .#... #.... ####. #...# #...# .###.
##### ....# ...#. ..#.. .#... .#... .#...
.###. #...# #...# .###. #...# #...# .###.
.###. #...# #...# .#### ....# ...#. .##..
"""
GLYPHS = np.array(
    [[[c == "#" for c in row] for row in line.split()] for line in _FONT.strip().splitlines()],
    dtype=np.float32,
)
SIZE = 12


def glyph_rows(rng: np.random.Generator, count: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Pictures and the digits they show."""
    digits = rng.integers(0, 10, count)
    pictures = np.zeros((count, SIZE, SIZE), dtype=np.float32)
    downs, rights = rng.integers(0, SIZE - 6, count), rng.integers(0, SIZE - 4, count)
    for picture, digit, down, right in zip(pictures, digits, downs, rights):
        picture[down : down + 7, right : right + 5] = GLYPHS[digit]
    contrast = rng.uniform(0.7, 1.3, (count, 1, 1))
    return pictures * contrast + noise * rng.standard_normal(pictures.shape), digits


def shape_rows(rng: np.random.Generator, count: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Squares, discs, crosses, rings, bars across and bars down, of any size and place."""
    kinds = rng.integers(0, 6, count)
    down, right = rng.uniform(4.0, 7.0, (2, count, 1, 1))
    size = rng.uniform(2.5, 4.0, (count, 1, 1))
    y, x = np.mgrid[:SIZE, :SIZE]
    dy, dx = np.abs(y - down), np.abs(x - right)
    radius = np.hypot(dy, dx)
    drawn = np.stack(
        [
            np.maximum(dy, dx) < size * 0.85,
            radius < size,
            ((dy < 0.8) | (dx < 0.8)) & (np.maximum(dy, dx) < size),
            np.abs(radius - size * 0.8) < 0.8,
            (dy < 0.9) & (dx < size),
            (dx < 0.9) & (dy < size),
        ]
    )
    pictures = drawn[kinds, np.arange(count)].astype(np.float32)
    return pictures + noise * rng.standard_normal(pictures.shape), kinds


def pictures(  # noqa: PLR0913
    seed: int,
    what: str,
    num_train: int,
    *,
    noise: float = 0.3,
    random_labels: bool = False,
    watched: str = "held out",
    num_classes: int | None = None,
) -> Data:
    """Pictures with their labels.

    Args:
        seed: Of everything drawn.
        what: "glyphs" or "shapes".
        num_train: Training pictures.
        noise: Standard deviation of each pixel.
        random_labels: Labels that mean nothing.
        watched: "held out"; "rotated" by 90 degrees; "shortcut": a row of pixels gives the label
            away in training and is random on the watched set; "noisy": three times the noise.
        num_classes: Put classes together modulo this number.
    """
    rng = np.random.default_rng(seed)
    make, classes = (glyph_rows, 10) if what == "glyphs" else (shape_rows, 6)
    x, y = make(rng, num_train, noise)
    seen_x, seen_y = make(rng, 2048, noise * (3.0 if watched == "noisy" else 1.0))
    if random_labels:
        y, seen_y = rng.integers(0, classes, len(y)), rng.integers(0, classes, len(seen_y))
    if watched == "rotated":
        seen_x = np.rot90(seen_x, axes=(1, 2))
    if watched == "shortcut":
        for rows, shown in ((x, y), (seen_x, rng.integers(0, classes, len(seen_y)))):
            rows[:, 0, :] = 0.0
            rows[np.arange(len(rows)), 0, shown] = 2.0
    if num_classes is not None:
        y, seen_y, classes = y % num_classes, seen_y % num_classes, num_classes
    return Data(train=_rows(x, y), watched={watched: _rows(seen_x, seen_y)}, num_classes=classes)


def _rows(x: np.ndarray, y: np.ndarray) -> Rows:
    shown: Tensor = torch.from_numpy(np.ascontiguousarray(x)).float()[:, None]
    return shown, torch.from_numpy(y.astype(np.int64))
