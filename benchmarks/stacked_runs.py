"""Several runs in one process: `python benchmarks/stacked_runs.py [PRESET] [N]`.

Their weights are stacked, and `torch.func.vmap` makes batched products of those of N networks.
Prints the total steps per second of one and of N stacked runs with the same plain network and
AdamW; `epigrok bench PRESET --packed N` measures N processes side by side instead.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from epigrok.bench.plain_training import plain_logits
from epigrok.bench.speed import comparable
from epigrok.config import RunConfig, preset
from epigrok.model import Network, build_model
from epigrok.tasks import Batch, TaskFamily, build_family, sample_world

SECONDS = 5.0


class Plain(nn.Module):
    """A network whose forward pass is the plain one."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, tokens_BL: Tensor) -> Tensor:
        return plain_logits(self.network, tokens_BL)


def stacked_step(config: RunConfig, number: int, device: torch.device) -> Callable[[Batch], None]:
    """One update of `number` runs that differ in their initial weights."""
    networks = [Plain(build_model(replace(config, run_seed=i), device)) for i in range(number)]
    stacked, buffers = stack_module_state(networks)
    weights = {name: nn.Parameter(tensor.detach()) for name, tensor in stacked.items()}
    optimiser = torch.optim.AdamW(weights.values(), lr=5e-4, fused=True)

    def loss_of(weights: dict[str, Tensor], tokens_BL: Tensor, answers_BT: Tensor) -> Tensor:
        def logits_of(one: dict[str, Tensor], its_buffers: dict[str, Tensor]) -> Tensor:
            return functional_call(networks[0], (one, its_buffers), (tokens_BL,))

        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            logits_NBTC = vmap(logits_of)(weights, buffers)
        targets = answers_BT.flatten().repeat(number)
        # Summed over runs: each gets the gradient of its own mean.
        losses = nn.functional.cross_entropy(logits_NBTC.flatten(end_dim=2).float(), targets)
        return losses * number

    compiled = torch.compile(loss_of, dynamic=False) if device.type == "cuda" else loss_of

    def step(batch: Batch) -> None:
        compiled(weights, batch.tokens_BL, batch.answers_BT).backward()
        optimiser.step()
        optimiser.zero_grad()

    return step


def steps_per_second(
    config: RunConfig, family: TaskFamily, number: int, device: torch.device
) -> float:
    """Of all runs together."""
    torch.compiler.reset()
    step = stacked_step(config, number, device)
    for i in range(3):
        step(family.training_batch(i))
    synchronise(device)
    started, taken = time.perf_counter(), 0
    while time.perf_counter() - started < SECONDS:
        for i in range(10):
            step(family.training_batch(i))
        synchronise(device)
        taken += 10
    return number * taken / (time.perf_counter() - started)


def synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def main(arguments: list[str]) -> None:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    # Compiled below vmap, cuDNN's attention fails on an H200 (torch 2.11).
    torch.backends.cuda.enable_cudnn_sdp(False)
    name = arguments[0] if arguments else ("icl-medium" if device.type == "cuda" else "icl-tiny")
    number = int(arguments[1]) if len(arguments) > 1 else 4
    config = comparable(preset(name))
    family = build_family(config, sample_world(config.task, 0), device)
    alone = steps_per_second(config, family, 1, device)
    together = steps_per_second(config, family, number, device)
    print(f"{name} on {device.type}, steps per second of all runs together")
    print(f"one run {alone:.1f}, {number} stacked {together:.1f}: {together / alone:.2f}x")


if __name__ == "__main__":
    main(sys.argv[1:])
