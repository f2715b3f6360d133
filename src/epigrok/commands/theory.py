"""`epigrok theory`: the figures of the solvable model, and with `delay` its exact times."""

import dataclasses
from pathlib import Path

import tyro

from epigrok.commands.theory_delay import DelayRequest, print_delay
from epigrok.theory.linear_model import summary_model

_MOST_CLASSIFIERS = 5  # simulated per point: largest margins take a second each


@dataclasses.dataclass(frozen=True, kw_only=True)
class FiguresRequest:
    """Draw the figures of the solvable linear model and write them with their data.

    Three figures, each as PDF, SVG, PNG, CSV (the data) and TXT (the caption):
      theory-summary      dynamics, EU peaks, EU peak before the threshold, delay against lambda
      theory-delay-error  error of each delay formula over (lambda, eps/C0)
      theory-tolerance    noise tolerance of linear classifiers: what the ratio reads and misses

    `epigrok theory delay --help` explains the other use: exact times for given parameters.
    """

    out: Path = Path("figures")
    """Folder the files go to; made if missing."""
    n: int = 1000
    """Data points of the finite systems drawn over the limit curves; simulated classifiers have a
    fifth as many weights."""
    seeds: int = 20
    """Number of finite systems; 0 draws none. At most five classifiers are simulated."""
    seed: int = 0
    """Seed of the first finite system."""
    sigma2: float | None = None
    """Variance of the likelihood; n * 1e-8 if not given."""
    tau2: float | None = None
    """Variance of the prior and of the true weights; 1 if not given."""
    s0: float | None = None
    """Initial variance of every weight; 100 if not given."""
    eps: float | None = None
    """Tolerance on the squared residual; n * 5e-5 if not given."""


def main(arguments: list[str]) -> int:
    """Run `epigrok theory` or `epigrok theory delay`."""
    style = (tyro.conf.FlagCreatePairsOff,)
    try:
        if arguments[:1] == ["delay"]:
            program = "epigrok theory delay"
            print_delay(tyro.cli(DelayRequest, prog=program, args=arguments[1:], config=style))
        else:
            program = "epigrok theory"
            request = tyro.cli(FiguresRequest, prog=program, args=arguments, config=style)
            for path in write_figures(request):
                print(path)
    except SystemExit as parsing_ended:  # after printing help, or what was wrong
        return int(parsing_ended.code or 0)
    return 0


def write_figures(request: FiguresRequest) -> list[Path]:
    """Compute the tables, draw the figures, write everything."""
    # Imported here, because `theory delay` needs no matplotlib and starts twice as fast without.
    from epigrok.figures.output import write_drawn
    from epigrok.figures.theory import draw_summary
    from epigrok.figures.theory_delay_error import draw_delay_error
    from epigrok.figures.theory_tolerance import draw_tolerance

    given = {name: getattr(request, name) for name in ("sigma2", "tau2", "s0", "eps")}
    changes = {name: value for name, value in given.items() if value is not None}
    model = dataclasses.replace(summary_model(request.n), **changes)
    summary = draw_summary(model, request.seeds, request.seed)
    num_weights, num_seeds = max(50, request.n // 5), min(request.seeds, _MOST_CLASSIFIERS)
    tolerance = draw_tolerance(num_weights, num_seeds, request.seed)
    figures = (summary, draw_delay_error(), tolerance)
    return [path for drawn in figures for path in write_drawn(drawn, request.out)]
