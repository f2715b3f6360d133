"""A small network taught in a second: by a teacher, which generalises, or by random labels."""

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from epigrok.random_streams import integers, normal, stream_key

NUM_CLASSES = 4
CENTRES_CD = 0.7 * normal(stream_key(0, "taught:centres"), (NUM_CLASSES, 32))


def _inputs(name: str) -> Tensor:
    """Points around the centres of the classes, which take turns."""
    return CENTRES_CD[torch.arange(300) % NUM_CLASSES] + normal(stream_key(0, name), (300, 32))


SEEN_X, HELD_OUT_X = _inputs("taught:seen"), _inputs("taught:held out")


def taught_labels(x: Tensor) -> Tensor:
    """What the teacher says: the nearest centre."""
    return torch.cdist(x, CENTRES_CD).argmin(dim=1)


RANDOM_LABELS = integers(stream_key(0, "taught:random"), NUM_CLASSES, (len(SEEN_X),))


def untaught_network(seed: int = 0) -> nn.Sequential:
    """With dropout and batch norm, which must be read in evaluation mode and left alone."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Linear(32, 64),
            nn.BatchNorm1d(64),
            nn.ReLU(),
            nn.Dropout(0.05),
            nn.Linear(64, NUM_CLASSES),
        )


class Teaching:
    """Full-batch steps; `accuracy` is that of the seen inputs at the last one."""

    def __init__(self, labels: Tensor, seed: int = 0) -> None:
        self.model, self._labels = untaught_network(seed), labels
        self._optimiser = torch.optim.AdamW(self.model.parameters(), lr=1e-2, weight_decay=0.01)
        self.accuracy, self.step = 0.0, 0

    def take(self, num_steps: int) -> "Teaching":
        """Take some steps."""
        for _ in range(num_steps):
            self.model.train()
            self._optimiser.zero_grad()
            logits = self.model(SEEN_X)
            cross_entropy(logits, self._labels).backward()
            self._optimiser.step()
            self.accuracy = float((logits.argmax(dim=1) == self._labels).double().mean())
            self.step += 1
        return self
