"""Train a network on modular addition and ask when it generalised: by its labels, and without them.

    python examples/when_did_it_grok.py [DIRECTORY] [STEPS]

Run again, it goes on from where it was, and then only answers.
"""

import sys
from dataclasses import replace
from pathlib import Path

import epigrok
from epigrok.evaluation import grokking_times


def main(directory: Path, num_steps: int) -> None:
    """Train, or resume, and print what each posterior tells."""
    config = replace(epigrok.preset("classic"), num_steps=num_steps)
    run = epigrok.train(config, directory)
    for times in grokking_times(run.metrics()):
        if times.split == "id_val":
            print(
                f"{times.posterior:<18} fitted at {times.fitted_step}, generalised at "
                f"{times.generalised_step}; epistemic uncertainty peaked at {times.peak_step} "
                f"and had collapsed at {times.collapsed_step}"
            )


if __name__ == "__main__":
    where = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/when-did-it-grok")
    main(where, int(sys.argv[2]) if len(sys.argv) > 2 else 3000)
