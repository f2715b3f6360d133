"""What a look stores: numbers, row by row answers, and features with the head.

Whatever can be computed from features is computed again offline; see `records.py` for the fields.
"""

from collections.abc import Callable
from math import log
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.detection import whole_network
from benchmarks.detection.training import Look, loss_of
from benchmarks.detection.variants import entry
from epigrok.monitor import ToleranceSettings, head_answers, tolerance
from epigrok.monitor.noise import row_tolerances
from epigrok.posteriors import HeadInputs, head_inputs

NUM_ROWS, NUM_CLOSE = 1024, 256
"""Rows read at a look, and rows that are read closely: stored, or under whole-network noise."""
_SLOW = (nn.RNNBase, nn.TransformerEncoderLayer)
NEARLY_FITTED = 0.9
"""Accuracy on the seen rows from which the whole network is read. No gate opens below."""


class RowsOf:
    """The rows of one set that looks read: the same ones at every look."""

    def __init__(self, x: Tensor, y: Tensor, last_only: bool) -> None:
        self._all_positions = y.ndim > 1 and not last_only
        self._last = y.ndim > 1 and last_only
        count = NUM_ROWS if not self._all_positions else -(-NUM_ROWS // y.shape[1])
        chosen = torch.linspace(0, len(x) - 1, min(count, len(x))).long()
        self.x, y = x[chosen], y[chosen]
        self.y = y.flatten() if self._all_positions else y[:, -1] if self._last else y
        # Positions of one sequence are alike, so a part of the rows is taken from all sequences.
        self._order = torch.from_numpy(np.random.default_rng(0).permutation(len(self.y)))
        self.y = self.y[self._order]

    @property
    def is_slow(self) -> bool:
        """Whether inputs are pictures or sequences, which make whole-network statistics slow."""
        return self.x.ndim > 2 or (not self.x.is_floating_point() and self.x.shape[1] > 4)

    @property
    def num_close(self) -> int:
        """Rows under whole-network noise."""
        return NUM_CLOSE // 2 if self.is_slow else NUM_CLOSE

    def pick(self, output: Tensor) -> Tensor:
        """One row per label, from what the network returns."""
        if self._last and output.ndim > 2:
            output = output[:, -1]
        return output.flatten(0, -2)[self._order]

    def part(self, count: int) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """Inputs of the first `count` rows, and their picker, where rows are inputs."""
        if self._all_positions:
            return self.x, lambda output: self.pick(output)[:count]
        inputs = self.x[self._order][:count]
        if self._last:
            return inputs, lambda output: output[:, -1]
        return inputs, lambda output: output


def head_rows(model: nn.Module, rows: RowsOf) -> HeadInputs:
    """Features of the rows, with the head."""
    found = head_inputs(model, rows.x)
    by_position = found.features_ND.view(len(rows.x), -1, found.features_ND.shape[1])
    features = rows.pick(by_position if by_position.shape[1] > 1 else by_position[:, 0])
    return HeadInputs(features_ND=features, head=found.head)


def set_numbers(inputs: HeadInputs, labels: Tensor) -> tuple[dict[str, float], dict[str, Any]]:
    """Numbers and rows of one set that need its features only."""
    logits = inputs.logits().double()
    logs = logits.log_softmax(dim=1)
    probs = logs.exp()
    entropy = -(probs * logs).sum(dim=1)
    top = logits.topk(2, dim=1).values
    margin = top[:, 0] - top[:, 1]
    answers = logits.argmax(dim=1)
    num_rows, num_classes = probs.shape
    correct = (answers == labels).double()
    by_class = [correct[labels == c].mean() for c in labels.unique()]
    features = inputs.features_ND.double()
    eigenvalues = torch.linalg.eigvalsh(torch.cov(features.T)).clamp_min(0.0)
    shares = eigenvalues / eigenvalues.sum().clamp_min(1e-300)
    numbers = {
        "accuracy": correct.mean(),
        "balanced accuracy": torch.stack(by_class).mean(),
        "num classes": float(len(by_class)),
        "entropy": entropy.mean() / log(num_classes),
        "confidence": probs.amax(dim=1).mean(),
        "nuclear norm": torch.linalg.matrix_norm(probs, "nuc")
        / (num_rows * min(num_rows, num_classes)) ** 0.5,
        "margin 10 %": margin.quantile(0.1),
        "spectral entropy": -torch.xlogy(shares, shares).sum() / log(len(shares)),
    }
    rows = {
        "answers": answers.numpy().astype(np.uint8),
        "labels": labels.numpy().astype(np.uint8),
        "max prob": probs.amax(dim=1)[:512].numpy().astype(np.float32),
        "entropy": entropy[:NUM_CLOSE].numpy().astype(np.float16),
        "margin": margin[:NUM_CLOSE].numpy().astype(np.float16),
    }
    return {name: float(value) for name, value in numbers.items()}, rows


def deep_numbers(look: Look) -> dict[str, Any]:
    """Statistics of rivals that take many passes; not at every look."""
    model = look.model
    x, y = (part[:2048] for part in look.data.train)
    found: dict[str, Any] = {}
    start = perf_counter()
    for size in (1e-5, 1e-4):
        found[f"llc {size:g}"] = whole_network.local_learning_coefficient(model, x, y, size)
    found["seconds llc"] = (perf_counter() - start) / 2
    start = perf_counter()
    found["commutator"] = whole_network.commutator_defect(model, x, y)
    found["seconds commutator"] = perf_counter() - start
    return found


def network_ratios(
    look: Look, sets: list[RowsOf]
) -> tuple[list[dict[str, tuple[float, ...]]], float]:
    """The ratio of each watched set under noise on the network, in several ways; seconds of one."""
    is_slow = sets[0].is_slow or any(isinstance(part, _SLOW) for part in look.model.modules())
    found = [
        whole_network.network_tolerances(
            look.model, rows.part, look.data.num_classes, is_slow, look.deviation
        )
        for rows in sets
    ]
    (seen, _), *watched = found
    ratios = [{name: entry(part[name], seen[name]) for name in seen} for part, _ in watched]
    return ratios, sum(seconds for _, seconds in found)


def read_look(look: Look, sets: dict[str, RowsOf], has_dear: bool = False) -> dict[str, Any]:
    """Everything that is stored of one look."""
    model = look.model
    model.eval()
    parts = list(sets.values())
    start = perf_counter()
    heads = [head_rows(model, rows) for rows in parts]
    settings = ToleranceSettings()
    for head in heads:
        short = HeadInputs(features_ND=head.features_ND[:256], head=head.head)
        tolerance(head_answers(short, settings), look.data.num_classes, settings)
    seconds = perf_counter() - start
    per_set = [set_numbers(head, rows.y) for head, rows in zip(heads, parts)]
    start = perf_counter()
    epistemic = []
    for rows in parts:
        inputs, pick = rows.part(rows.num_close)
        epistemic.append(whole_network.epistemic_rows(model, inputs, pick, 0.1))
    seconds_eu = perf_counter() - start
    with torch.no_grad():
        x, y = (part[:2048] for part in look.data.train)
        train_loss = float(loss_of(model, x, y))
        train_accuracy = float((model(x).argmax(dim=-1) == y).double().mean())
        norm = sum(float(values.double().square().sum()) for values in model.parameters()) ** 0.5
    network, seconds_whole = [{} for _ in parts[1:]], float("nan")
    if per_set[0][0]["accuracy"] >= NEARLY_FITTED:
        network, seconds_whole = network_ratios(look, parts)
    record: dict[str, Any] = {
        "step": look.step,
        "phase": look.phase,
        "train seconds": look.train_seconds,
        "seconds ratio": seconds,
        "seconds eu": seconds_eu,
        "seconds whole": seconds_whole,
        "train loss": train_loss,
        "train accuracy": train_accuracy,
        "weight norm": norm,
        "numbers": [numbers for numbers, _ in per_set],
        "rows": [rows for _, rows in per_set],
        "heads": heads,
        "network": network,
        "deep": deep_numbers(look) if has_dear else {},
    }
    for numbers, rows, head, found in zip(record["numbers"], record["rows"], heads, epistemic):
        numbers["eu 0.1"] = float(found.mean())
        rows["eu"] = found.numpy().astype(np.float16)
        short = HeadInputs(features_ND=head.features_ND[:NUM_CLOSE], head=head.head)
        row_tau = row_tolerances(short, settings).clamp_max(6e4)
        rows["row tolerance"] = row_tau.numpy().astype(np.float16)
    return record
