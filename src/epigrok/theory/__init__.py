"""The solvable model: Gaussian variational inference in Bayesian linear regression, exactly.

float64 NumPy and SciPy throughout; networks live in `model`. From the general to the particular:

- `marchenko_pastur`: the spectral law of the data, its transforms, spectra of finite systems
- `threshold`: success within a tolerance, its entropy, the closures
- `flow`, `predictive`, `gaussian_uncertainty`: any data set at any time, risks, accuracy and
  uncertainty
- `excess_risk`, `asymptotics`: the paper's risk curves and when they cross a level
- `bayes_risk`: the well-specified model without the paper's matched assumption
- `delay`, `validity`: train-generalisation delays, their bounds, and which assumptions hold
- `classifier`: how much noise on its weights a linear classifier tolerates
- `linear_model`, `simulation`, `summary`: parameters, finite systems, tables behind the figures
"""

from epigrok.extras import extra_named

with extra_named():
    from epigrok.theory import (
        asymptotics,
        bayes_risk,
        classifier,
        delay,
        excess_risk,
        flow,
        gaussian_uncertainty,
        linear_model,
        marchenko_pastur,
        predictive,
        simulation,
        summary,
        threshold,
        validity,
    )

__all__ = [
    "asymptotics",
    "bayes_risk",
    "classifier",
    "delay",
    "excess_risk",
    "flow",
    "gaussian_uncertainty",
    "linear_model",
    "marchenko_pastur",
    "predictive",
    "simulation",
    "summary",
    "threshold",
    "validity",
]
