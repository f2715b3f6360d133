"""Speed of the theory: `python benchmarks/theory.py` prints one line per claim.

Best of three, after one warm-up; the flow is timed once, as it takes seconds. On a machine whose
cores are busy set `OMP_NUM_THREADS=1`: linear algebra whose threads wait for a core is slower.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.linalg import eigh

from epigrok.figures.output import write_figure
from epigrok.figures.theory import summary_caption, summary_figure
from epigrok.theory.classifier.convex import Features, logistic_student
from epigrok.theory.classifier.tolerance_table import tolerance_table
from epigrok.theory.delay import crossing_s, delay_s
from epigrok.theory.flow import eigen_flow, risks_at
from epigrok.theory.linear_model import summary_model
from epigrok.theory.marchenko_pastur import mp_log_G, sample_spectrum
from epigrok.theory.summary import summary_table


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def best_of_three(work: Callable[[], object]) -> float:
    work()
    return min(seconds(work) for _ in range(3))


def report(what: str, measured: float, limit: float | None = None, note: str = "") -> None:
    asked = (
        ""
        if limit is None
        else f"(asked: under {limit:g} s) {'ok' if measured < limit else 'MISSED'}"
    )
    print(f"{what:<58}{measured:>10.4f} s  {asked}{note}", flush=True)


def write_summary() -> None:
    model = summary_model()
    table, caption = summary_table(model, 20), summary_caption(model, 20)
    with tempfile.TemporaryDirectory() as folder:
        write_figure(summary_figure(table), Path(folder), "summary", table, caption)


def time_flow(n: int = 2500, d: int = 2000) -> None:
    rng = np.random.default_rng(0)
    X, w_star = rng.standard_normal((n, d)), rng.standard_normal(d)
    y, gram = X @ w_star, X.T @ X / n
    alone = min(seconds(lambda: eigh(gram, driver="evd")) for _ in range(2))
    report(f"eigh alone, d = {d}", alone)
    for start, Sigma0 in (("isotropic", 1.0), ("full", gram)):
        begin = time.perf_counter()
        flow = eigen_flow(X, y, 1.0, 1.0, np.zeros(d), Sigma0)
        setup = time.perf_counter() - begin
        share = f"eigh is {100 * alone / setup:.0f} % of it"
        report(f"eigen_flow, n = {n}, d = {d}, {start} Sigma0", setup, note=share)
    times = np.geomspace(1e-6, 1.0, 200)
    report("risks at 200 times after it", seconds(lambda: risks_at(flow, times, w_star, 0.0)))


def main() -> None:
    s = np.geomspace(1e-3, 1e8, 400)
    lam = np.linspace(0.1, 0.99, 50)
    rng = np.random.default_rng(0)
    report("400 evaluations of log G, one call", best_of_three(lambda: mp_log_G(s, 0.9)), 0.02)
    report(
        "50 exact crossings, one call", best_of_three(lambda: crossing_s(1e-3, "gen", lam, 0)), 0.05
    )
    one_by_one = best_of_three(lambda: [crossing_s(1e-3, "gen", x, 0.0) for x in lam])
    report("50 exact crossings, one by one", one_by_one, 0.05)
    report(
        "spectrum of 10,000 weights", best_of_three(lambda: sample_spectrum(12_000, 10_000, rng)), 5
    )
    tiny = best_of_three(lambda: delay_s(1e-3, np.geomspace(1e-17, 1e-3, 50), 0.0))
    report("50 delays much shorter than the times, one call", tiny)
    report(
        "a logistic classifier's noise tolerance",
        best_of_three(lambda: logistic_student([Features(0.5)], 1e-2)),
    )
    report(
        "noise tolerances of the figure, no simulations", seconds(lambda: tolerance_table(50, 0))
    )
    report("the same with 5 classifiers of 200 weights", seconds(lambda: tolerance_table(200, 5)))
    report("four-panel summary, 20 finite systems, all files", best_of_three(write_summary), 10)
    time_flow()


if __name__ == "__main__":
    main()
