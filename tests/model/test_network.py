"""What every network offers, and which one is built from which settings."""

from dataclasses import dataclass, replace

import pytest
import torch
from small_tasks import one_parameter_run
from torch import Tensor, nn

from epigrok.config import MLPConfig, ModelConfig, RunConfig, TaskConfig, preset
from epigrok.errors import UserError
from epigrok.model import MLP, Network, Transformer, build_model, register_model
from epigrok.random_streams import integers, stream_key

RUNS = {"classic": preset("classic"), "icl": one_parameter_run()}


@pytest.fixture(params=RUNS)
def config(request: pytest.FixtureRequest) -> RunConfig:
    return RUNS[request.param]


def test_features_times_head_are_the_logits(config: RunConfig) -> None:
    model = build_model(config)
    length = config.task.num_examples * config.task.example_length
    tokens = integers(stream_key(0, "t"), config.task.vocabulary_size, (4, length))
    logits = model(tokens)
    assert logits.shape == (4, config.task.num_examples, config.task.vocabulary_size)
    torch.testing.assert_close(logits, model.features(tokens) @ model.head_weight.T)


def test_initial_weights_follow_the_run_seed_and_leave_the_global_generator_alone(
    config: RunConfig,
) -> None:
    before = torch.random.get_rng_state()
    models = [build_model(replace(config, run_seed=seed)) for seed in (0, 0, 1)]
    assert torch.equal(before, torch.random.get_rng_state())
    first, again, other = (model.state_dict() for model in models)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(models[0].head_weight, models[2].head_weight)
    assert [name for name in first if torch.equal(first[name], other[name])] == [
        name for name in first if "norm" in name
    ]


def test_hidden_matrices_are_neither_embedding_nor_head() -> None:
    mlp, transformer = (build_model(config) for config in RUNS.values())
    assert isinstance(mlp, MLP)
    assert mlp.hidden_matrices() == ["layers.0.weight", "layers.1.weight"]
    assert isinstance(transformer, Transformer)
    assert set(transformer.hidden_matrices()) == {
        name
        for name, weights in transformer.named_parameters()
        if name.startswith("blocks") and weights.ndim == 2
    }


class Lookup(Network):
    """The least that is a network: a table of features and a head."""

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.table = nn.Embedding(num_classes, 3)
        self.head = nn.Linear(3, num_classes, bias=False)

    @property
    def head_weight(self) -> Tensor:
        return self.head.weight

    def features(self, tokens_BL: Tensor) -> Tensor:
        return self.table(tokens_BL[:, :1])


def test_a_network_of_ones_own_has_all_that_is_asked_of_it() -> None:
    model = Lookup(5)
    assert model(torch.tensor([[1, 2], [3, 4]])).shape == (2, 1, 5)
    assert model.hidden_matrices() == []
    assert model.flops_per_sequence(2) is None


def test_a_registered_builder_builds_networks_with_its_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ModelConfig, "kinds", dict(ModelConfig.kinds))

    @dataclass(frozen=True, kw_only=True)
    class LookupConfig(ModelConfig):
        """Has nothing to set."""

    config = replace(preset("classic"), model=LookupConfig(), run_seed=3)
    with pytest.raises(UserError, match=r"no model named 'LookupConfig'; there are: .*MLPConfig"):
        build_model(config)

    @register_model(LookupConfig)
    def build(settings: LookupConfig, task: TaskConfig, run_seed: int) -> Lookup:
        assert (settings, task, run_seed) == (config.model, config.task, 3)
        return Lookup(task.vocabulary_size)

    assert isinstance(build_model(config), Lookup)


def test_a_builder_cannot_take_anothers_settings() -> None:
    with pytest.raises(UserError, match=r"'MLPConfig' is registered already, by epigrok\.model"):
        register_model(MLPConfig)(Lookup)
