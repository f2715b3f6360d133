"""Which rule has a network learnt? `python benchmarks/parallel_examples.py RUN [STEP]`.

A context that holds a multiple of the query, (x', y') = c·(x, y) mod p, gives the answer away:
z = z'/c, whatever the task. Any other query needs two examples combined. This prints how often a
trained network of the two-parameter family is right on the last answer with and without such a
parallel example, at the newest kept step or at STEP.
"""

import sys

import torch
from torch import Tensor

from epigrok import open_run
from epigrok.config.task import TwoParameterTask
from epigrok.tasks import Batch


def has_parallel_example(batch: Batch, task: TwoParameterTask) -> Tensor:
    """Whether an example before the query is a multiple of it, and not all zeros."""
    examples_BTE = batch.tokens_BL.unflatten(1, (-1, task.example_length))
    x_BT, y_BT = examples_BTE[..., 0], examples_BTE[..., 1]
    cross_BT = (x_BT * y_BT[:, -1:] - y_BT * x_BT[:, -1:]) % task.modulus
    is_parallel_BT = (cross_BT == 0) & ((x_BT != 0) | (y_BT != 0))
    return is_parallel_BT[:, :-1].any(dim=1)


@torch.no_grad()
def main(path: str, step: int | None = None) -> None:
    run = open_run(path)
    task = run.config.task
    if not isinstance(task, TwoParameterTask):
        raise SystemExit(f"{path} did not learn the two-parameter family")
    model, family = run.model(step), run.family()
    share = 1.0 - (task.modulus / (task.modulus + 1)) ** (task.num_examples - 1)
    print(f"a parallel example is expected in {share:.3f} of the contexts")
    print(f"{'split':<10}{'accuracy':>9}{'contexts with':>15}{'accuracy':>9}{'without':>9}")
    num_sequences = run.config.evaluation.num_sequences
    for split in task.splits:
        batch = family.evaluation_batch(split, num_sequences, task.num_examples)
        logits = [model(tokens_BL)[:, -1] for tokens_BL in batch.tokens_BL.split(256)]
        is_right = (torch.cat(logits).argmax(dim=-1) == batch.answers_BT[:, -1]).float()
        is_parallel = has_parallel_example(batch, task)
        print(
            f"{split.name:<10}{is_right.mean():9.3f}{is_parallel.float().mean():15.3f}"
            f"{is_right[is_parallel].mean():9.3f}{is_right[~is_parallel].mean():9.3f}"
        )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else None)
