"""`epigrok demo`: train two models that grok, look at a trained run meanwhile, write a report."""

import os
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap

from rich.live import Live

from epigrok.commands.arguments import parse
from epigrok.exit_codes import EXIT_FAILED, EXIT_STOPPED
from epigrok.files import make_writable_directory
from epigrok.records.status import read_statuses
from epigrok.records.zoo import unpacked
from epigrok.report.answer import headline, monitor_said
from epigrok.report.terminal import course_table, courses_so_far
from epigrok.sweeps.description import Condition, Sweep, prepare
from epigrok.sweeps.engines.local import PoolOptions, run_pool
from epigrok.sweeps.engines.slots import parse_slots

# Fewer sequences than in the presets, so that the demo takes less than three minutes.
_EVALUATION = {"evaluation.num_sampled_sequences": 128, "evaluation.num_final_samples": 32}
_SELDOM = Condition(where={"preset": "classic"}, set={"evaluation.every": 100})
DEMO = Sweep(
    name="demo", methods=("icl-tiny", "classic"), overrides=_EVALUATION, conditions=(_SELDOM,)
)
ABOUT = {
    "classic": "an MLP learns half of the table of a + b mod 59; can it do the rest?",
    "icl-tiny": "a transformer infers the a of a·x mod 31 from a few examples",
}
LADDER = "icl-tiny"
"""A run that comes with the package; the demo evaluates its checkpoints."""
LADDER_SEQUENCES, LADDER_SAMPLES = 64, 4
"""Few, because two runs train beside it."""
SHOWN_POSTERIOR = "weight-noise:0.1"
SECONDS_BETWEEN_LINES = 10.0


@dataclass(frozen=True, kw_only=True)
class DemoArguments:
    """Train two small models on a CPU until they grok, and follow a trained run meanwhile.

    A monitor watches them without labels and says when they have generalised; a report shows how.
    """

    out: Path = Path("demo")
    """Folder for the runs; an interrupted demo resumes where it stopped."""


def main(arguments: Sequence[str]) -> int:
    """Train both models side by side, then say when each one generalised."""
    out = parse(DemoArguments, "demo", arguments).out
    make_writable_directory(out)
    ladder = unpacked(LADDER, out / "zoo")
    print("training here, on one core each:")
    for name, summary in ABOUT.items():
        print(f"  {name:<9} {summary}", flush=True)
    runs = prepare(out, DEMO)
    todo = [run for run in runs.values() if not run.is_done]
    # One thread each: small models gain nothing from a second, and lose when they share cores.
    slots = parse_slots("cpu*2", os.environ)
    meanwhile = _Meanwhile(out, ladder)
    with meanwhile.going_on():
        ends = run_pool(todo, slots, PoolOptions(), lambda end: None)
        meanwhile.is_stopped = any(end.state != "done" for end in ends)
    for end in ends:
        if end.state == "failed":
            print(f"{end.run.path} failed: {end.reason}; log: {end.run.log}")
            return EXIT_FAILED
        if end.state != "done":
            print(f"stopped; `epigrok demo --out {out}` resumes it")
            return EXIT_STOPPED
    print("\nvarying the context of the transformer, drawing figures, writing the report …")
    transformer, _ = runs.values()
    _vary_context(transformer.path)
    # Imported here, because the process of the pool needs no matplotlib.
    from epigrok.report import write_report

    page = write_report(out)
    for line in conclusions(out):
        print(line)
    print(f"\nruns and metrics are in {out.resolve()}\nopen {page} in a browser")
    return 0


def conclusions(out: Path) -> list[str]:
    """Of every run what accuracy did and what the monitor announced, in the report's words."""
    found = courses_so_far(read_statuses(out))
    lines = []
    for name in ABOUT:
        of_run = [course for course in found if course.run.config["preset"] == name]
        lines += ["", name]
        for sentence in (headline(of_run, []), monitor_said(of_run)):
            lines += wrap(sentence, width=78, initial_indent="  ", subsequent_indent="  ")
    return lines


class _Meanwhile:
    """Tells while the pool trains how far the runs have got, and walks along a trained run.

    On a terminal a table follows the runs; elsewhere lines are printed now and then.
    """

    def __init__(self, out: Path, ladder: Path) -> None:
        self._out, self._ladder = out, ladder
        self._is_over = threading.Event()
        self._is_terminal = sys.stdout.isatty()
        self._printed: set[str] = set()
        self.is_stopped = False

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Print from another thread for the duration of a `with` block."""
        with self._table(), ThreadPoolExecutor(max_workers=1) as executor:
            told = executor.submit(self._tell)
            try:
                yield
            except BaseException:
                self.is_stopped = True
                raise
            finally:
                self._is_over.set()
        # Raises here what went wrong in the thread.
        told.result()

    def _table(self) -> AbstractContextManager[object]:
        """A table that follows the runs, where somebody looks at a terminal."""
        if not self._is_terminal:
            return nullcontext()
        # What is printed meanwhile appears above it.
        return Live(
            get_renderable=lambda: course_table(courses_so_far(read_statuses(self._out))),
            refresh_per_second=1,
        )

    def _tell(self) -> None:
        is_over = False
        # The walk waits until the smaller model is done and leaves a core free.
        while not (is_over or self._print_progress()):
            is_over = self._is_over.wait(SECONDS_BETWEEN_LINES)
        if not self.is_stopped:
            self._walk()
        while not self._is_over.wait(SECONDS_BETWEEN_LINES):
            self._print_progress()

    def _print_progress(self) -> bool:
        """Print where each run is, unless the table shows it; return whether one is done."""
        statuses = [status for status in read_statuses(self._out) if status.num_steps]
        for status in statuses if not self._is_terminal else []:
            scores = "  ".join(f"{k} {v:.3f}" for k, v in status.accuracy.items())
            place = f"step {status.step}/{status.num_steps}"
            line = f"  {status.config['preset']:<9} {place:<15} {scores}"
            if line not in self._printed:
                self._printed.add(line)
                print(line, flush=True)
        return any(status.state == "done" for status in statuses)

    def _walk(self) -> None:
        import torch

        num_threads = torch.get_num_threads()
        torch.set_num_threads(1)
        for line in ladder_lines(self._ladder):
            print(line, flush=True)
            if self.is_stopped:
                break
        torch.set_num_threads(num_threads)


def ladder_lines(path: Path) -> Iterator[str]:
    """Accuracy and uncertainty at the checkpoints of the run that comes with the package."""
    from epigrok.runs.evaluating import EvaluateOptions, evaluate_run
    from epigrok.runs.run import open_run

    run = open_run(path)
    modulus = run.config.task.vocabulary_size
    yield (
        f"\nzoo:{LADDER} comes with the package: a transformer that was trained on z = a·x mod "
        f"{modulus}.\nAccuracy and epistemic uncertainty (EU, nats) along its training, on "
        f"{LADDER_SEQUENCES} sequences. On\nunseen inputs (id_val) EU rises while they are "
        "memorised, and collapses where they are grokked.\n"
    )
    splits = [split.name for split in run.config.task.splits]
    yield f"  {'step':>6}" + "".join(f"{split:>16}" for split in splits)
    for step in run.checkpoints:
        options = EvaluateOptions(
            step=step,
            posteriors=(SHOWN_POSTERIOR,),
            num_samples=LADDER_SAMPLES,
            num_sequences=LADDER_SEQUENCES,
            device="cpu",
        )
        rows = {row["split"]: row for row in evaluate_run(run, options)}
        cells = (
            f"{rows[s]['accuracy_final']:.2f}, EU {rows[s]['epistemic_final']:.3f}" for s in splits
        )
        yield f"  {step:>6}" + "".join(f"{cell:>16}" for cell in cells)
    yield ""


def _vary_context(path: Path) -> None:
    """Evaluate an in-context run with shorter and with noisy contexts."""
    from epigrok.runs.evaluating import EvaluateOptions, evaluate_run
    from epigrok.runs.run import open_run

    run = open_run(path)
    # Only the posterior with the cheapest samples, because there are many contexts.
    num_samples = run.config.evaluation.num_samples
    options = EvaluateOptions(
        posteriors=("laplace:evidence",), num_samples=num_samples, device="cpu"
    )
    evaluate_run(run, options, "context-length")
    evaluate_run(run, options, "context-noise")
