"""How a task is learnt: the model, the optimiser and the learning-rate schedule."""

from abc import ABC
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from epigrok.config.checks import require, require_non_negative, require_positive
from epigrok.config.task import TaskConfig


class ModelConfig(ABC):  # noqa: B024
    """Settings of a network, a frozen dataclass; the package `model` builds networks from them."""

    kinds: ClassVar[dict[str, type["ModelConfig"]]] = {}
    """Settings of every known network, by their name in `config.json`."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        ModelConfig.kinds[cls.__name__] = cls

    @property
    def num_channels(self) -> float:
        """Least numbers it keeps per token while training, to refuse sizes that fit no machine."""
        return 1.0

    def require_task(self, task: TaskConfig) -> None:  # noqa: B027
        """Refuse a task that the network cannot learn; by default it accepts every task."""


@dataclass(frozen=True, kw_only=True)
class TransformerConfig(ModelConfig):
    """Decoder-only transformer: pre-norm, full RoPE, ReLU, tied embeddings.

    Attention, feed-forward and output projections have no biases; LayerNorm has its own.
    """

    num_layers: int = 6
    num_heads: int = 4
    width: int = 512
    feedforward_width: int = 2048
    init_std: float = 0.02
    """Of every initial matrix; feed-forward output projections get 1/√(2·num_layers) of it."""
    embedding_init_std: float = 0.02

    def __post_init__(self) -> None:
        require_positive(
            num_layers=self.num_layers,
            num_heads=self.num_heads,
            feedforward_width=self.feedforward_width,
            init_std=self.init_std,
            embedding_init_std=self.embedding_init_std,
        )
        # Rotary encoding turns pairs of channels, so a head needs an even number of them.
        require(
            self.width > 0 and self.width % (2 * self.num_heads) == 0,
            f"width {self.width} must be a multiple of 2 x num_heads = {2 * self.num_heads}",
        )

    @property
    def num_channels(self) -> float:
        """The residual stream and the feed-forward layer, in every block."""
        return float(self.num_layers) * (self.width + self.feedforward_width)

    def require_task(self, task: TaskConfig) -> None:
        """Refuse tasks without a context."""
        require(
            task.num_examples > 1,
            f"a transformer needs a task with a context, but {type(task).__name__} shows single "
            "examples; use an MLP",
        )


@dataclass(frozen=True, kw_only=True)
class MLPConfig(ModelConfig):
    """Embeds both operands with one table and passes the pair through ReLU layers."""

    embedding_width: int = 128
    hidden_width: int = 256
    num_hidden_layers: int = 2

    def __post_init__(self) -> None:
        require_positive(
            embedding_width=self.embedding_width,
            hidden_width=self.hidden_width,
            num_hidden_layers=self.num_hidden_layers,
        )

    @property
    def num_channels(self) -> float:
        """All layers."""
        return float(self.num_hidden_layers) * self.hidden_width + self.embedding_width

    def require_task(self, task: TaskConfig) -> None:
        """Refuse anything but single examples of two operands."""
        require(
            task.num_examples == 1 and task.example_length == 3,
            f"an MLP reads one example of two operands, but {type(task).__name__} shows "
            f"{task.num_examples} examples of {task.example_length} tokens; use a transformer",
        )


def _check_betas(betas: tuple[float, float]) -> None:
    require(all(0.0 <= beta < 1.0 for beta in betas), f"betas must lie in [0, 1), got {betas}")


@dataclass(frozen=True, kw_only=True)
class AdamWConfig:
    """AdamW; weight decay acts on matrices only, never on LayerNorm's gains and biases."""

    lr: float = 1.5e-4
    betas: tuple[float, float] = (0.9, 0.98)
    eps: float = 1e-8
    weight_decay: float = 1.0
    clip_norm: float = 1.0
    """Largest global gradient norm; larger gradients are scaled down to it."""

    def __post_init__(self) -> None:
        require_positive(lr=self.lr, eps=self.eps, clip_norm=self.clip_norm)
        require_non_negative(weight_decay=self.weight_decay)
        _check_betas(self.betas)

    @property
    def head_weight_decay(self) -> float:
        """Weight decay of the output head, the default prior precision of last-layer Laplace."""
        return self.weight_decay

    @property
    def num_train_samples(self) -> int:
        """One: each step takes the gradient once, at the weights themselves."""
        return 1


@dataclass(frozen=True, kw_only=True)
class MuonConfig:
    """Muon on the matrices of the blocks, AdamW on embeddings and gains."""

    lr: float = 0.04
    momentum: float = 0.95
    weight_decay: float = 0.1
    adamw_lr: float = 5e-3
    adamw_weight_decay: float = 0.1
    betas: tuple[float, float] = (0.9, 0.98)
    eps: float = 1e-8
    clip_norm: float = 1.0

    def __post_init__(self) -> None:
        require_positive(lr=self.lr, adamw_lr=self.adamw_lr, eps=self.eps, clip_norm=self.clip_norm)
        require_non_negative(
            weight_decay=self.weight_decay,
            adamw_weight_decay=self.adamw_weight_decay,
        )
        require(0.0 <= self.momentum < 1.0, f"momentum must lie in [0, 1), got {self.momentum}")
        _check_betas(self.betas)

    @property
    def head_weight_decay(self) -> float:
        """Weight decay of the output head, an embedding or a last layer, which AdamW trains."""
        return self.adamw_weight_decay

    @property
    def num_train_samples(self) -> int:
        """One: each step takes the gradient once, at the weights themselves."""
        return 1


@dataclass(frozen=True, kw_only=True)
class IVONConfig:
    """IVON: training carries a Gaussian posterior over all weights; decay acts on matrices."""

    lr: float = 0.5
    """Applied after clipping, so the largest step of a weight is lr x clip_radius."""
    ess: float | Literal["auto"] = "auto"
    """Effective sample size; `auto` is the number of training (task, input) cells. More tasks then
    make the posterior narrower, so fix a number to compare task counts."""
    hess_init: float = 1.0
    weight_decay: float = 1e-5
    betas: tuple[float, float] = (0.9, 0.99999)
    clip_radius: float = 1e-3
    num_train_samples: int = 1
    """Weight samples averaged in every step."""
    clip_norm: float | None = None
    """Largest global gradient norm; larger gradients are scaled down to it. By default no limit."""

    def __post_init__(self) -> None:
        require_positive(
            lr=self.lr,
            hess_init=self.hess_init,
            clip_radius=self.clip_radius,
            num_train_samples=self.num_train_samples,
        )
        require_non_negative(weight_decay=self.weight_decay)
        require(self.ess == "auto" or self.ess > 0, f"ess must be positive, got {self.ess}")
        require(
            self.clip_norm is None or self.clip_norm > 0,
            f"clip_norm must be positive, got {self.clip_norm}",
        )
        _check_betas(self.betas)

    @property
    def head_weight_decay(self) -> float:
        """Weight decay of the output head."""
        return self.weight_decay

    def effective_sample_size(self, num_training_points: int) -> float:
        """λ: a fixed number, or the size of the training set."""
        return float(num_training_points if self.ess == "auto" else self.ess)


OptimiserConfig = AdamWConfig | MuonConfig | IVONConfig


@dataclass(frozen=True, kw_only=True)
class ScheduleConfig:
    """Learning rate over the run: linear warm-up, then a cosine to `final_scale` of the peak."""

    warmup_steps: int = 1000
    initial_scale: float = 0.01
    final_scale: float = 0.1

    def __post_init__(self) -> None:
        require_non_negative(
            warmup_steps=self.warmup_steps,
            initial_scale=self.initial_scale,
            final_scale=self.final_scale,
        )
