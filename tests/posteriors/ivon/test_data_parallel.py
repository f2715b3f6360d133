"""IVON in two processes that train one model: equal samples, the steps of the large batch."""

import subprocess
import sys
from pathlib import Path

import torch
from small_network import SETTINGS, network, state_of, take_steps

from epigrok.posteriors import IVON

TRAIN_A_HALF = """
import os
import sys
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path

import torch
from small_network import SETTINGS, loss_of, network, state_of
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from epigrok.posteriors import IVON


def train(rank, folder, num_batches):
    model = network()
    if rank == 1:
        torch.nn.init.zeros_(model[0].weight)  # the first process decides what they start from
    optimiser = IVON(model.parameters(), **SETTINGS)
    parallel = DistributedDataParallel(model)
    for step in range(6):
        optimiser.zero_grad()
        for part in range(num_batches):
            size = 10 // num_batches
            rows = slice(10 * rank + size * part, 10 * rank + size * (part + 1))
            is_last = part == num_batches - 1
            with optimiser.sampled_weights(0), nullcontext() if is_last else parallel.no_sync():
                (loss_of(parallel, step, rows) / num_batches).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimiser.step()
    torch.save(state_of(optimiser), folder / f"{rank}-{num_batches}.pt")


rank, folder = int(sys.argv[1]), Path(sys.argv[2])
distributed.init_process_group(
    "gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2,
    timeout=timedelta(seconds=60),
)
for num_batches in (1, 2):
    train(rank, folder, num_batches)
distributed.barrier()
# All is saved. Taking gloo's threads down now and then aborts the process, so leave without it.
os._exit(0)
"""


def test_two_processes_take_the_steps_of_the_large_batch(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", TRAIN_A_HALF, str(rank), str(tmp_path)],
            cwd=Path(__file__).parents[2],
        )
        for rank in range(2)
    ]
    assert [process.wait(timeout=120) for process in processes] == [0, 0]
    model = network()
    optimiser = IVON(model.parameters(), **SETTINGS)
    take_steps(model, optimiser, range(6), clip_norm=0.5)
    for num_batches in (1, 2):
        first, second = (torch.load(tmp_path / f"{rank}-{num_batches}.pt") for rank in range(2))
        assert torch.equal(first, second)
        torch.testing.assert_close(first, state_of(optimiser), rtol=1e-10, atol=1e-12)
