"""How much depends on the label noise e of the exact predictors.

`python benchmarks/oracle_sensitivity.py RUN` scores both exact predictors, and the network of RUN
at every step whose weights are kept, for e around its default. Over all scored answers.
"""

import sys

from epigrok import open_run
from epigrok.evaluation import evaluate, evaluate_oracles, with_oracle
from epigrok.posteriors import Point

NOISES = (1e-4, 1e-3, 1e-2)
COLUMNS = ("accuracy", "nll", "total")


def main(path: str) -> None:
    run = open_run(path)
    config, family = run.config, run.family()
    batches = {
        split.name: family.evaluation_batch(
            split, config.evaluation.num_sequences, config.task.num_examples
        )
        for split in config.task.splits
    }
    sets = {
        noise: {
            split: with_oracle(config, family, batch, noise) for split, batch in batches.items()
        }
        for noise in NOISES
    }
    print(f"{'split':<10}{'predictor':<22}{'e':>8}" + "".join(f"{name:>10}" for name in COLUMNS))
    tables = {noise: evaluate_oracles(sets[noise]) for noise in NOISES}
    for rows in zip(*tables.values()):
        for noise, row in zip(NOISES, rows):
            values = "".join(f"{row.summary[name]:>10.4f}" for name in COLUMNS)
            print(f"{row.split:<10}{row.posterior:<22}{noise:>8g}{values}")
    print(f"\n{'split':<10}{'step':<10}" + "".join(f"{f'e = {noise:g}':>12}" for noise in NOISES))
    for step in run.checkpoints:
        model = run.model(step)
        positions = {
            noise: {
                row.split: row.summary.get("relative_position")
                for row in evaluate(model, [Point.of(model)], sets[noise], num_samples=1)
            }
            for noise in NOISES
        }
        for split in batches:
            values = [positions[noise][split] for noise in NOISES]
            texts = ["-" if value is None else f"{value:+.3f}" for value in values]
            print(f"{split:<10}{step:<10}" + "".join(f"{text:>12}" for text in texts))


if __name__ == "__main__":
    main(sys.argv[1])
