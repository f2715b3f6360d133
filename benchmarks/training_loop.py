"""Steps per second of `icl-tiny`: this package against a plain PyTorch loop with a DataLoader.

Both train the same model with the same optimisers on the same kind of batches, in alternating
stretches of one process, so that whatever else the machine does hits both alike.

    python benchmarks/training_loop.py [--device cpu] [--rounds 5] [--steps 60]
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
import tyro
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from epigrok.config import preset
from epigrok.tasks import build_family, sample_world
from epigrok.training import initial_state, training_steps
from epigrok.training.optimiser import set_learning_rates
from epigrok.training.schedule import learning_rate_scale

CONFIG = preset("icl-tiny")


@dataclass
class Arguments:
    """Compare training speeds."""

    device: str = "cpu"
    rounds: int = 5
    steps: int = 60


class Rows(Dataset[tuple[Tensor, Tensor]]):
    """Rows of z = a·x mod p, drawn one at a time as a map-style data set does."""

    def __init__(self, world: dict[str, Tensor]) -> None:
        self.world = world

    def __len__(self) -> int:
        return CONFIG.batch_size * CONFIG.num_steps

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        generator = torch.Generator().manual_seed(index)
        task = int(torch.randint(len(self.world["train_tasks"]), (1,), generator=generator))
        inputs = self.world["train_inputs"][task]
        chosen = inputs[
            torch.randperm(len(inputs), generator=generator)[: CONFIG.task.num_examples]
        ]
        answers = self.world["answers"][self.world["train_tasks"][task], chosen]
        return torch.stack([chosen, answers], dim=1).flatten(), answers


def plain_steps(device: str) -> Iterator[None]:
    """The loop most people would write."""
    world = sample_world(CONFIG.task, CONFIG.task_seed)
    state = initial_state(CONFIG, device)
    loader = DataLoader(Rows(world), batch_size=CONFIG.batch_size)
    for step, (tokens, answers) in enumerate(loader):
        set_learning_rates(
            state.optimisers, learning_rate_scale(step, CONFIG.schedule, CONFIG.num_steps)
        )
        logits = state.model(tokens.to(device))
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), answers.to(device).flatten())
        for optimiser in state.optimisers:
            optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(state.model.parameters(), 1.0)
        for optimiser in state.optimisers:
            optimiser.step()
        yield


def our_steps(device: str) -> Iterator[None]:
    """This package's loop."""
    world = sample_world(CONFIG.task, CONFIG.task_seed)
    family = build_family(CONFIG, world, device)
    for _ in training_steps(initial_state(CONFIG, device), family, CONFIG):
        yield


def main() -> None:
    """Print both speeds and their ratio."""
    arguments = tyro.cli(Arguments)
    makers: dict[str, Callable[[str], Iterator[None]]] = {"plain": plain_steps, "ours": our_steps}
    loops = {name: make(arguments.device) for name, make in makers.items()}
    seconds = dict.fromkeys(loops, 0.0)
    for loop in loops.values():
        for _ in range(5):
            next(loop)
    for _ in range(arguments.rounds):
        for name, loop in loops.items():
            started = time.perf_counter()
            for _ in range(arguments.steps):
                next(loop)
            seconds[name] += time.perf_counter() - started
    rates = {name: arguments.rounds * arguments.steps / spent for name, spent in seconds.items()}
    for name, rate in rates.items():
        print(f"{name:<6} {rate:6.1f} steps/s")
    print(f"ours / plain = {rates['ours'] / rates['plain']:.2f}")


if __name__ == "__main__":
    main()
