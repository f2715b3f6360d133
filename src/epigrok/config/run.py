"""What a run is: one frozen `RunConfig`, complete enough to repeat it."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

import tyro

from epigrok.config.checks import require, require_positive
from epigrok.config.learning import MLPConfig, ModelConfig, OptimiserConfig, ScheduleConfig
from epigrok.config.task import ClassicTask, TaskConfig, TwoParameterTask


@dataclass(frozen=True, kw_only=True)
class EvaluationConfig:
    """When and on how much data the model is evaluated."""

    every: int = 500
    """Steps between evaluations; step 0 and the last step are always evaluated."""
    num_rows: int = 2048
    """Rows per split, rounded up so that every task appears equally often."""

    def __post_init__(self) -> None:
        require_positive(every=self.every, num_rows=self.num_rows)


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
        if isinstance(self.task, TwoParameterTask):
            require(
                self.batch_size % self.task.num_train_tasks == 0,
                f"batch_size {self.batch_size} is not a multiple of the "
                f"{self.task.num_train_tasks} training tasks that share its input sequences",
            )
        if isinstance(self.task, ClassicTask):
            require(
                self.batch_size <= self.task.num_training_points,
                f"batch_size {self.batch_size} exceeds the {self.task.num_training_points} "
                "training cells",
            )
