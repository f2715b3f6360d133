"""How much noise on its weights a linear classifier tolerates, on seen and on fresh inputs.

- `noise_tolerance`: tolerance and ratio from the law of the margins
- `least_squares`: least squares at any time, decay and start, in closed form
- `convex`: logistic regression with decay, several kinds of features, clusters, the largest margin
- `simulation`: finite classifiers to compare with
- `tolerance_table`: the table behind the figure
"""

from epigrok.theory.classifier import (
    convex,
    least_squares,
    noise_tolerance,
    simulation,
    tolerance_table,
)

__all__ = ["convex", "least_squares", "noise_tolerance", "simulation", "tolerance_table"]
