"""The schema of every table: its columns, their types and units, and what identifies a row.

Writing, views, export, TensorBoard and `epigrok columns` all use this module, which needs no torch.
A key identifies exactly one row of its table.
"""

from dataclasses import dataclass

from epigrok.columns import Column

STEP = Column("step", "integer", "updates taken")
SPLIT = Column("split", "text", "what the model was evaluated on; see Splits")
POSTERIOR = Column("posterior", "text", "the posterior or exact predictor behind the prediction")
MEMBERS = Column("members", "text", "runs of an ensemble; empty for other posteriors")
CONTEXT_LENGTH = Column("context_length", "integer", "examples in the window, the query included")
CONTEXT_NOISE = Column("context_noise", "number", "probability that a context answer is replaced")
BIN = Column("bin", "integer", "bin of confidence, of 15 equal ones from 0")

NUM_SAMPLES = Column("num_samples", "integer", "weight samples behind the row")
NUM_SEQUENCES = Column("num_sequences", "integer", "sequences behind the row")
_AMOUNTS = (NUM_SAMPLES, NUM_SEQUENCES)

METRICS = (
    Column("accuracy", "number", "share of answers whose most likely class is right"),
    Column("nll", "number", "negative log-likelihood of the right answer", "nats"),
    Column("ece", "number", "expected calibration error, 15 bins"),
    Column("brier", "number", "Brier score: squared distance from the right answer"),
    Column("total", "number", "entropy of the averaged prediction", "nats"),
    Column("aleatoric", "number", "mean entropy of the samples' predictions", "nats"),
    Column("epistemic", "number", "total less aleatoric: what the samples disagree on", "nats"),
    Column("epistemic_corrected", "number", "epistemic times S/(S-1), for few samples", "nats"),
    Column("total_se", "number", "standard error of total over sequences", "nats"),
    Column("aleatoric_se", "number", "standard error of aleatoric over sequences", "nats"),
    Column("epistemic_se", "number", "standard error of epistemic over sequences", "nats"),
    Column("kl_memorising", "number", "symmetric KL to the exact memoriser", "nats"),
    Column("kl_generalising", "number", "symmetric KL to the exact generaliser", "nats"),
    Column("relative_position", "number", "from -1 at the generaliser to +1 at the memoriser"),
)
"""The one list of metrics; the last three exist where the task has exact predictors."""
METRIC_NAMES = tuple(metric.name for metric in METRICS)
FINAL_ANSWER = "_final"
"""Suffix of a metric of the last answer alone; without it, over all answers of a sequence."""
_SCORES = (
    *METRICS,
    *(
        Column(m.name + FINAL_ANSWER, m.type, f"{m.meaning}; last answer only", m.unit)
        for m in METRICS
    ),
)
_OPTIMISER = tuple(
    Column(f"{name}_{quantile}", "number", f"{share} quantile of {what}; runs trained with IVON")
    for name, what in (("sigma", "the posterior's σ"), ("hessian", "the Hessian estimate h"))
    for quantile, share in (("q05", "5 %"), ("q50", "50 %"), ("q95", "95 %"))
)

_TOLERANCE = (
    Column("state", "text", "where the split stands; empty for the training split"),
    Column("unreadable", "text", "why this look changed nothing, or took 'generalised' back"),
    Column("tolerance_ratio", "number", "tolerance over that of the training split"),
    Column("tolerance_ratio_log_se", "number", "standard error of its logarithm"),
    Column("network_ratio", "number", "the ratio with noise on the whole network, where asked for"),
    Column("network_ratio_log_se", "number", "standard error of its logarithm"),
    Column("steadiness", "number", "Cohen's κ between the answers and those of an earlier look"),
    Column("kept", "number", "the same with those of the look first sure of 'generalised'"),
    Column("settled_ahead", "number", "agreement with early answers, less that of seen ones"),
    Column("settled_ahead_se", "number", "its standard error"),
    Column("predictability", "number", "how well the answers follow from those to seen inputs"),
    Column("predictability_se", "number", "its standard error"),
    Column("seen_predictability", "number", "that of seen answers, each as often as here"),
    Column("seen_predictability_se", "number", "its standard error"),
    Column("answers", "text", "the answers at this look, for the steadiness of later ones"),
    Column("tolerance", "number", "relative noise on the head that leaves the answers alone"),
    Column("tolerance_log_se", "number", "standard error of its logarithm"),
    Column("calibrated_epistemic", "number", "EU under the training split's tolerance", "nats"),
    Column("calibrated_epistemic_se", "number", "its standard error over sequences", "nats"),
    Column("confidence", "number", "mean of the highest probability"),
    Column("chance", "number", "sum of the squared shares of the answers"),
    Column("train_accuracy", "number", "accuracy of the training split's last answers"),
)
TOLERANCE_NAMES = tuple(column.name for column in _TOLERANCE)


@dataclass(frozen=True)
class Table:
    """One table of a run."""

    name: str
    """Its name in queries."""
    meaning: str
    key: tuple[Column, ...]
    """What identifies a row within its run."""
    values: tuple[Column, ...]
    has_facts: bool = False
    """Whether rows also have facts of their posterior, such as its prior precision."""
    file: str = ""
    """JSON-lines file in the run directory; empty for tables that are kept as Parquet."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns, the key first."""
        return (*self.key, *self.values)


_SCORED = (STEP, SPLIT, POSTERIOR)
_AT_LENGTH = (*_SCORED, CONTEXT_LENGTH)

_ALL = (
    Table(
        "metrics",
        "the curve: every evaluation while training",
        _SCORED,
        (*_AMOUNTS, *_SCORES),
        has_facts=True,
        file="metrics.jsonl",
    ),
    Table(
        "final",
        "the evaluation of the last step, with more weight samples",
        _SCORED,
        (*_AMOUNTS, *_SCORES),
        has_facts=True,
        file="final.jsonl",
    ),
    Table(
        "exact",
        "the exact Bayesian predictors on the same sequences; they do not depend on training",
        _SCORED,
        (*_AMOUNTS, *_SCORES),
        file="exact.jsonl",
    ),
    Table(
        "training",
        "what the optimiser saw at evaluated steps",
        (STEP,),
        (
            Column(
                "loss",
                "number",
                "mean cross-entropy of the batch, at the update's last weight sample",
                "nats",
            ),
            Column(
                "gradient_norm",
                "number",
                "global norm of the gradient at that sample, before clipping",
            ),
            Column("learning_rate_scale", "number", "learning rate over its peak"),
            *_OPTIMISER,
        ),
        file="training.jsonl",
    ),
    Table(
        "tolerance",
        "what the monitor saw at evaluated steps, of last answers and without labels of the split",
        (STEP, SPLIT),
        _TOLERANCE,
        file="tolerance.jsonl",
    ),
    Table(
        "timings",
        "time spent since the row before; not repeatable, and so kept apart",
        (STEP,),
        (
            Column("seconds_training", "number", "taking steps", "seconds"),
            Column("seconds_evaluating", "number", "evaluating", "seconds"),
        ),
        file="timings.jsonl",
    ),
    Table(
        "calibration",
        "accuracy against confidence in the final evaluation; bins without predictions are absent",
        (*_SCORED, BIN),
        (
            *_AMOUNTS,
            Column("count", "integer", "predictions in the bin"),
            Column("accuracy", "number", "share of them that are right"),
            Column("confidence", "number", "their mean confidence"),
        ),
        file="calibration.jsonl",
    ),
    Table(
        "evaluation",
        "what `epigrok evaluate` measured after training",
        (*_SCORED, MEMBERS),
        (*_AMOUNTS, *_SCORES),
        has_facts=True,
        file="evaluation.jsonl",
    ),
    Table(
        "context_length",
        "one checkpoint under contexts of every length",
        (*_SCORED, MEMBERS, CONTEXT_LENGTH),
        (*_AMOUNTS, CONTEXT_NOISE, *METRICS),
        file="context-length.jsonl",
    ),
    Table(
        "context_noise",
        "one checkpoint under contexts of every noise level",
        (*_SCORED, MEMBERS, CONTEXT_NOISE),
        (*_AMOUNTS, CONTEXT_LENGTH, *METRICS),
        file="context-noise.jsonl",
    ),
    Table("positions", "`metrics` by context length", _AT_LENGTH, (NUM_SAMPLES, *METRICS)),
    Table("final_positions", "`final` by context length", _AT_LENGTH, (NUM_SAMPLES, *METRICS)),
    Table("exact_positions", "`exact` by context length", _AT_LENGTH, (NUM_SAMPLES, *METRICS)),
)

TABLES = {table.name: table for table in _ALL}
"""Every table by its name."""
TRAINING_TABLES = (
    "metrics", "final", "exact", "training", "tolerance", "timings", "calibration",
)  # fmt: skip
"""Tables that training writes; resuming removes their rows past the checkpoint."""
SERIES_TABLES = {"context-length": "context_length", "context-noise": "context_noise"}
"""Series of contexts -> the table that keeps it."""
ACCURACY_FINAL = "accuracy" + FINAL_ANSWER
EPISTEMIC_FINAL = "epistemic" + FINAL_ANSWER
TOTAL_FINAL = "total" + FINAL_ANSWER
"""Columns of the last answer, which events, separation and status use."""
