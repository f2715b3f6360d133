"""What a run is: one frozen `RunConfig`, complete enough to repeat it."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

import tyro

from epigrok.config.checks import require, require_positive
from epigrok.config.learning import (
    IVONConfig,
    MLPConfig,
    ModelConfig,
    OptimiserConfig,
    ScheduleConfig,
)
from epigrok.config.posterior import parse_posterior, require_distinct
from epigrok.config.task import ClassicTask, TaskConfig, TwoParameterTask

ContextSweep = Literal["context-length", "context-noise"]


@dataclass(frozen=True, kw_only=True)
class EvaluationConfig:
    """When and on how much data the model is evaluated."""

    every: int = 500
    """Steps between evaluations; step 0 and the last step are always evaluated."""
    posteriors: tuple[str, ...] = ("point",)
    """What to track: point, laplace[:δ|:evidence], laplace-exact, laplace-probit, weight-noise:s,
    ivon, ivon-isotropic."""
    num_rows: int = 2048
    """Rows per split, rounded up so that every task appears equally often; the classic task, whose
    rows are single examples, always takes all it has."""
    num_sampled_rows: int = 2048
    """Of those, rows on which sampled posteriors are evaluated: each sample costs a pass."""
    num_samples: int = 16
    """Posterior samples while training."""
    num_final_samples: int = 64
    """Posterior samples of a second evaluation at the last step."""
    matmul_precision: Literal["float32", "tf32"] = "tf32"
    """Of matrix products on a GPU; weights, sums and everything on a CPU stay float32 or wider."""
    final_sweeps: tuple[ContextSweep, ...] = ()
    """What to vary of the context once training is over."""
    oracle_noise: float = 1e-3
    """Label noise that the exact Bayesian predictors allow for; 0 leaves them out. The classic task
    has none."""

    def __post_init__(self) -> None:
        require_positive(
            every=self.every,
            num_rows=self.num_rows,
            num_sampled_rows=self.num_sampled_rows,
            num_samples=self.num_samples,
            num_final_samples=self.num_final_samples,
        )
        require(
            0.0 <= self.oracle_noise < 1.0,
            f"oracle_noise must lie in [0, 1), got {self.oracle_noise}",
        )
        require(bool(self.posteriors), "at least one posterior must be tracked")
        require_distinct(self.posteriors)
        # Curves over training are those of the smaller number.
        require(
            self.num_final_samples >= self.num_samples,
            f"num_final_samples {self.num_final_samples} must not be below num_samples "
            f"{self.num_samples}",
        )


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Everything that decides a run's numbers, except the device it runs on."""

    preset: Annotated[str, tyro.conf.Suppress]
    """The recipe this run started from; a label that does not enter the run id."""
    task: TaskConfig
    model: ModelConfig
    optim: OptimiserConfig
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    num_steps: int = 100_000
    batch_size: int = 1024
    task_seed: int = 0
    """Which tasks and inputs exist, which are held out, and the evaluation sets."""
    run_seed: int = 0
    """Everything random about learning them: initial weights, batches, noise."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Of training arithmetic; `auto` is bfloat16 autocast on a GPU and float32 on a CPU."""
    num_ladder_checkpoints: int = 12
    """Weights kept at log-spaced steps for later analysis, beside the newest for resuming."""

    def __post_init__(self) -> None:
        require_positive(num_steps=self.num_steps, batch_size=self.batch_size)
        for name in ("task_seed", "run_seed"):
            seed = getattr(self, name)
            require(-(2**63) <= seed < 2**63, f"{name} must be a 64-bit integer, got {seed}")
        require(
            self.num_ladder_checkpoints >= 2,
            f"num_ladder_checkpoints must be at least 2, got {self.num_ladder_checkpoints}",
        )
        require(
            self.schedule.warmup_steps <= self.num_steps,
            f"warm-up of {self.schedule.warmup_steps} steps is longer than the run of "
            f"{self.num_steps}",
        )
        require(
            isinstance(self.model, MLPConfig) == isinstance(self.task, ClassicTask),
            "the MLP learns the classic family and the transformer the in-context ones; "
            f"got {type(self.model).__name__} for {type(self.task).__name__}",
        )
        for name in self.evaluation.posteriors:
            posterior = parse_posterior(name)
            require(
                isinstance(self.optim, IVONConfig) or not posterior.needs_ivon,
                f"posterior {name!r} exists only for runs trained with IVON",
            )
            takes_decay = posterior.is_laplace and posterior.value is None
            require(
                not takes_decay or self.optim.head_weight_decay > 0,
                f"posterior {name!r} takes the head's weight decay as prior precision, which is 0 "
                f"here; name one instead, as in '{name}:1'",
            )
        require(
            self.task.num_examples > 1 or not self.evaluation.final_sweeps,
            "a task whose rows are single examples has no context to vary",
        )
        if isinstance(self.task, TwoParameterTask):
            require(
                self.batch_size % self.task.num_train_tasks == 0,
                f"batch_size {self.batch_size} is not a multiple of the "
                f"{self.task.num_train_tasks} training tasks, which take equal shares of it",
            )
        if isinstance(self.task, ClassicTask):
            require(
                self.batch_size <= self.task.num_training_points,
                f"batch_size {self.batch_size} exceeds the {self.task.num_training_points} "
                "training cells",
            )
