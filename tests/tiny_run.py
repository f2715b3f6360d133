"""The smallest run that has everything: several splits, posteriors, evaluations and checkpoints."""

from dataclasses import replace

from epigrok.config import (
    EvaluationConfig,
    RunConfig,
    ScheduleConfig,
    TransformerConfig,
    preset,
)

EVALUATION = EvaluationConfig(
    every=5,
    num_sequences=48,
    posteriors=("point", "laplace", "weight-noise:0.1"),
    num_samples=2,
    num_final_samples=3,
)


def tiny(evaluation: EvaluationConfig = EVALUATION, **changes: object) -> RunConfig:
    """Twenty steps of a very small icl-tiny, evaluated five times."""
    base = replace(
        preset("icl-tiny"),
        num_steps=20,
        batch_size=32,
        model=TransformerConfig(num_layers=1, num_heads=2, width=16, feedforward_width=32),
        schedule=ScheduleConfig(warmup_steps=3),
        evaluation=evaluation,
        num_ladder_checkpoints=4,
    )
    return replace(base, **changes)  # type: ignore[arg-type]
