"""`epigrok demo`: two models grok on a CPU, and their uncertainty collapses, in minutes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from epigrok.commands.arguments import parse
from epigrok.config import preset
from epigrok.evaluation import grokking_times
from epigrok.experiments import Run, TrainOptions, train
from epigrok.experiments.progress import reporter_for_terminal

RUNS = {
    "classic": "modular addition mod 59: an MLP memorises half the table, then groks the rest",
    "icl-tiny": "in-context z = a·x mod 31: a transformer infers the hidden a from examples",
}


@dataclass(frozen=True, kw_only=True)
class DemoArguments:
    """Train two small models on a CPU until they grok, tracking their uncertainty."""

    out: Path = Path("demo")
    """Folder for the runs; a demo that was interrupted goes on where it stopped."""


def main(arguments: Sequence[str]) -> int:
    """Train, then say when each model generalised and what its uncertainty did."""
    out = parse(DemoArguments, "demo", arguments).out
    for name, summary in RUNS.items():
        print(f"\n{name}: {summary}", flush=True)
        config = preset(name)
        reporter = reporter_for_terminal(config.num_steps, 0)
        run = train(config, out / name, TrainOptions(device="cpu"), reporter)
        if not run.is_done:
            print(f"stopped; `epigrok demo --out {out}` goes on from here")
            return 130
        _tell(run)
    print(f"\nresults are in {out.resolve()}: one folder per run, metrics.jsonl in each")
    return 0


def _tell(run: Run) -> None:
    for times in grokking_times(run.metrics()):
        if times.posterior != "weight-noise:0.1" or times.split == "id_train":
            continue
        share = times.final_epistemic / times.peak_epistemic
        print(
            f"  {times.split:<8} fitted at step {times.fitted}, generalised (accuracy 0.95) at "
            f"{times.generalised}; epistemic uncertainty peaked at {times.peak} and ended at "
            f"{share:.1%} of its peak"
        )
    last = run.config.num_steps
    for row in run.metrics():
        if row["step"] == last and row["posterior"] == "point":
            print(f"  {row['split']:<8} final accuracy {row['accuracy_final']:.3f}")
