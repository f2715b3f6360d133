"""The configuration of a run: one frozen `RunConfig`, complete enough to repeat the run."""

from collections.abc import Iterator
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from typing import Any, Literal

from epigrok.config.checks import require, require_memory, require_positive
from epigrok.config.learning import ModelConfig, OptimiserConfig, ScheduleConfig
from epigrok.config.posterior import require_distinct
from epigrok.config.splits import ID_TRAIN
from epigrok.config.task import TaskConfig

ContextSeries = Literal["context-length", "context-noise"]
"""One model under contexts that vary along one axis."""
SEED_FIELDS = ("run_seed", "task_seed")
"""The fields in which runs of one setting differ."""


@dataclass(frozen=True, kw_only=True)
class EvaluationConfig:
    """When the model is evaluated, and on how much data."""

    every: int = 500
    """Steps between evaluations; step 0 and the last step are always evaluated."""
    posteriors: tuple[str, ...] = ("point",)
    """Posteriors to track: point, laplace[:δ|:evidence], laplace-exact, laplace-probit,
    weight-noise:s, ivon, ivon-isotropic."""
    num_sequences: int = 2048
    """Sequences per split, rounded up so that every task appears equally often; the classic task
    always takes all cells of its table."""
    num_sampled_sequences: int = 2048
    """Of those, sequences for sampled posteriors; each weight sample costs a pass over them."""
    num_samples: int = 16
    """Weight samples per posterior while training."""
    num_final_samples: int = 64
    """Weight samples per posterior in the final evaluation."""
    matmul_precision: Literal["float32", "tf32"] = "tf32"
    """Of matrix products on a GPU; weights, sums and all work on a CPU stay float32 or wider."""
    final_series: tuple[ContextSeries, ...] = ()
    """Series of contexts to evaluate after training."""
    oracle_noise: float = 1e-3
    """Label noise that the exact predictors assume; 0 leaves them out. The classic task never has
    any."""

    def __post_init__(self) -> None:
        require_positive(
            every=self.every,
            num_sequences=self.num_sequences,
            num_sampled_sequences=self.num_sampled_sequences,
            num_samples=self.num_samples,
            num_final_samples=self.num_final_samples,
        )
        require(
            0.0 <= self.oracle_noise < 1.0,
            f"oracle_noise must lie in [0, 1), got {self.oracle_noise}",
        )
        require(bool(self.posteriors), "posteriors is empty; name at least one, such as point")
        require_distinct(self.posteriors)
        # The curve has num_samples, the final evaluation at least as many.
        require(
            self.num_final_samples >= self.num_samples,
            f"num_final_samples {self.num_final_samples} must not be below num_samples "
            f"{self.num_samples}",
        )


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Everything that decides a run's numbers, except the device it runs on."""

    preset: str
    """The preset this run started from; a label that is not part of the run id."""
    task: TaskConfig
    model: ModelConfig
    optim: OptimiserConfig
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    num_steps: int = 100_000
    batch_size: int = 1024
    task_seed: int = 0
    """Decides which tasks and inputs exist, which are held out, and the evaluation sets."""
    run_seed: int = 0
    """Decides everything random about learning them: initial weights, batches, noise."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Of training; `auto` is bfloat16 autocast on a GPU and float32 on a CPU."""
    num_ladder_checkpoints: int = 12
    """Checkpoints kept at log-spaced steps for analysis, besides the newest for resuming."""

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
            f"the warm-up of {self.schedule.warmup_steps} steps is longer than the run of "
            f"{self.num_steps} steps; shorten schedule.warmup_steps",
        )
        # Fitting, the monitor and Laplace fits all read the first split as the training split.
        first = self.task.splits[0] if self.task.splits else None
        require(
            first == ID_TRAIN,
            f"the first split of a task must be epigrok.config.splits.ID_TRAIN, got {first}",
        )
        self.model.require_task(self.task)
        # At least the logits, and a channel for every token in every layer.
        num_tokens = float(self.task.num_examples) * self.task.example_length
        widest = max(float(self.task.vocabulary_size), self.model.num_channels)
        for name, rows in (
            ("batch_size", self.batch_size),
            ("evaluation.num_sequences", self.evaluation.num_sequences),
            ("evaluation.num_samples", self.evaluation.num_samples),
            ("evaluation.num_final_samples", self.evaluation.num_final_samples),
        ):
            require_memory(f"{name} {rows}", 4.0 * rows * num_tokens * widest)
        require_memory("the context", 4.0 * num_tokens**2)
        self.task.require_batch_size(self.batch_size)
        require(
            self.task.num_examples > 1 or not self.evaluation.final_series,
            f"{type(self.task).__name__} shows single examples, so there is no context to vary; "
            "leave evaluation.final_series empty",
        )

    def __repr__(self) -> str:
        """A section per line, without the fields that have their default: it can be evaluated."""
        lines = [
            f"    {name}={_concise(value) if is_dataclass(value) else repr(value)},\n"
            for name, value in _not_default(self)
        ]
        return f"RunConfig(\n{''.join(lines)})"


def _concise(section: Any) -> str:
    shown = ", ".join(f"{name}={value!r}" for name, value in _not_default(section))
    return f"{type(section).__name__}({shown})"


def _not_default(section: Any) -> Iterator[tuple[str, Any]]:
    """Fields that must be given to build the same section again."""
    for item in fields(section):
        made = item.default if item.default_factory is MISSING else item.default_factory()
        value = getattr(section, item.name)
        if made is MISSING or value != made:
            yield item.name, value
