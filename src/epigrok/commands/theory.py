"""`epigrok theory`: the figures of the solvable model, and with `delay` its exact times."""

import dataclasses
from pathlib import Path

import numpy as np
import tyro
from scipy.special import expit, logit

from epigrok.commands.theory_delay import DelayRequest, print_delay
from epigrok.theory.linear_model import summary_model
from epigrok.theory.summary import delay_error_table, summary_table


@dataclasses.dataclass(frozen=True, kw_only=True)
class FiguresRequest:
    """Draw the figures of the solvable linear model and write them with their data.

    Two figures, each as PDF, SVG, PNG, CSV (the data) and TXT (the caption):
      theory-summary      dynamics, EU peaks, EU peak before the threshold, delay against lambda
      theory-delay-error  error of each delay formula over (lambda, eps/C0)

    `epigrok theory delay --help` explains the other use: exact times for given parameters.
    """

    out: Path = Path("figures")
    """Folder the files go to; made if missing."""
    n: int = 1000
    """Data points of the finite systems drawn over the limit curves."""
    seeds: int = 20
    """Number of finite systems; 0 draws none."""
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
    """Compute the tables, draw both figures, write everything."""
    # Here and not above: `theory delay` needs no matplotlib and starts twice as fast without.
    from epigrok.figures.output import write_figure
    from epigrok.figures.theory import summary_caption, summary_figure
    from epigrok.figures.theory_delay_error import delay_error_caption, delay_error_figure

    given = {name: getattr(request, name) for name in ("sigma2", "tau2", "s0", "eps")}
    changes = {name: value for name, value in given.items() if value is not None}
    model = dataclasses.replace(summary_model(request.n), **changes)
    summary = summary_table(model, request.seeds, request.seed)
    caption = summary_caption(model, request.seeds)
    figure = summary_figure(summary, caption)
    paths = write_figure(figure, request.out, "theory-summary", summary, caption)
    lams = expit(np.linspace(logit(0.01), logit(0.999), 64))
    errors = delay_error_table(lams, np.geomspace(1e-12, 0.5, 64))
    caption = delay_error_caption(errors)
    figure = delay_error_figure(errors, caption)
    return paths + write_figure(figure, request.out, "theory-delay-error", errors, caption)
