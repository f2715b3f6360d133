"""Accuracy and epistemic uncertainty at every kept checkpoint, from the library's parts.

    python examples/along_a_run.py [RUN] [SEQUENCES] [SAMPLES]

RUN is a run directory or `zoo:NAME`. `epigrok evaluate` does the same with more care; this shows
how little is needed to do it yourself, with a posterior or an uncertainty of your own.
"""

import sys

import torch

import epigrok
from epigrok.posteriors import WeightNoise, logits_of


def main(name: str, num_sequences: int, num_samples: int) -> None:
    """Print both for every split of every checkpoint."""
    run = epigrok.open_run(name)
    family = run.family()
    for step in run.checkpoints:
        model = run.model(step).eval()
        posterior = WeightNoise.relative(model, 0.1)
        print(f"step {step}")
        for split in run.config.task.splits:
            batch = family.evaluation_batch(split, num_sequences, run.config.task.num_examples)
            with torch.no_grad():
                logits = [
                    logits_of(model, posterior.sample(index), batch.tokens_BL)[:, -1]
                    for index in range(num_samples)
                ]
            probs_SBC = torch.stack(logits).softmax(dim=-1)
            is_right = probs_SBC.mean(dim=0).argmax(dim=-1) == batch.answers_BT[:, -1]
            accuracy, epistemic = is_right.double(), epigrok.decompose(probs_SBC).epistemic
            print(
                f"  {split.name:<10} accuracy {accuracy.mean():.2f}  EU {epistemic.mean():.3f} nats"
            )


if __name__ == "__main__":
    given = dict(enumerate(sys.argv))
    main(given.get(1, "zoo:icl-tiny"), int(given.get(2, 64)), int(given.get(3, 8)))
