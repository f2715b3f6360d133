"""The transformer against an independent re-implementation, and what its layout promises."""

import math

import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from epigrok.bench import plain_training
from epigrok.config import TransformerConfig, preset
from epigrok.model import Transformer, build_model
from epigrok.model.transformer import initialise_transformer
from epigrok.random_streams import integers, stream_key


def plain_logits(model: Transformer, tokens: Tensor, num_heads: int) -> Tensor:
    """Every position of every block, written from the equations with explicit loops and masks."""
    weights = dict(model.named_parameters())
    hidden = weights["embedding.weight"][tokens]
    length, width = hidden.shape[1:]
    head = width // num_heads

    def norm(x: Tensor, name: str) -> Tensor:
        gain, bias = weights[f"{name}.weight"], weights[f"{name}.bias"]
        centred = x - x.mean(-1, keepdim=True)
        return centred / (centred.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt() * gain + bias

    def rope(x: Tensor) -> Tensor:
        """Complex rotation of channel i with channel i + head/2."""
        pair = torch.complex(x[..., : head // 2], x[..., head // 2 :])
        frequency = x.new_tensor([10_000.0 ** (-2 * i / head) for i in range(head // 2)])
        angle = torch.arange(length).to(x.dtype)[:, None] * frequency
        turned = pair * torch.polar(torch.ones_like(angle), angle)
        return torch.cat([turned.real, turned.imag], dim=-1)

    for layer in range(len(model.blocks)):
        get = lambda name, layer=layer: weights[f"blocks.{layer}.{name}.weight"]  # noqa: E731
        normed = norm(hidden, f"blocks.{layer}.attention_norm")
        query = normed @ get("query").T
        key, value = (normed @ get("key_value").T).split(width, dim=-1)
        outputs = []
        for h in range(num_heads):
            part = slice(h * head, (h + 1) * head)
            scores = rope(query[..., part]) @ rope(key[..., part]).transpose(1, 2) / math.sqrt(head)
            future = torch.ones(length, length, dtype=torch.bool).triu(1)
            outputs.append(scores.masked_fill(future, -torch.inf).softmax(-1) @ value[..., part])
        hidden = hidden + torch.cat(outputs, -1) @ get("attention_out").T
        inner = (
            norm(hidden, f"blocks.{layer}.feedforward_norm") @ get("feedforward_in").T
        ).clamp_min(0)
        hidden = hidden + inner @ get("feedforward_out").T
    return norm(hidden, "norm") @ weights["embedding.weight"].T


def small_model(example_length: int, dtype: torch.dtype) -> tuple[Transformer, int]:
    torch.set_default_dtype(dtype)
    try:
        config = TransformerConfig(
            num_layers=3, num_heads=2, width=16, feedforward_width=24, init_std=0.3
        )
        model = Transformer(config, 29, window=8 * example_length, example_length=example_length)
    finally:
        torch.set_default_dtype(torch.float32)
    initialise_transformer(model, config, run_seed=1)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter += 0.1 * torch.arange(len(parameter)) / len(parameter)
    return model.to(dtype), config.num_heads


@pytest.mark.parametrize("example_length", [2, 3])
def test_logits_match_an_independent_implementation(example_length: int) -> None:
    model, num_heads = small_model(example_length, torch.float64)
    tokens = integers(stream_key(0, "tokens"), 29, (5, 8 * example_length))
    everywhere = plain_logits(model, tokens, num_heads)
    expected = everywhere[:, example_length - 2 :: example_length]
    torch.testing.assert_close(model(tokens), expected, rtol=0.0, atol=1e-10)


def test_gradients_match_an_independent_implementation() -> None:
    model, num_heads = small_model(3, torch.float64)
    tokens = integers(stream_key(0, "tokens"), 29, (4, 24))
    parameters = list(model.parameters())
    ours = torch.autograd.grad(model(tokens).pow(2).sum(), parameters)
    plain = plain_logits(model, tokens, num_heads)[:, 1::3]
    for mine, theirs in zip(ours, torch.autograd.grad(plain.pow(2).sum(), parameters)):
        torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["icl-tiny", "icl-medium"])
def test_one_pass_gives_every_context_length(name: str) -> None:
    config = preset(name)
    model = build_model(config)
    length, num_examples = config.task.example_length, config.task.num_examples
    tokens = integers(stream_key(0, "t"), config.task.vocabulary_size, (3, length * num_examples))
    with torch.no_grad():
        whole = model(tokens)
        for k in range(1, num_examples + 1, 3):
            truncated = model(tokens[:, : k * length])
            torch.testing.assert_close(truncated[:, -1], whole[:, k - 1], rtol=1e-5, atol=1e-5)


def test_an_answer_is_not_predicted_from_itself_or_from_later_tokens() -> None:
    model, _ = small_model(3, torch.float64)
    tokens = integers(stream_key(0, "tokens"), 29, (1, 24))
    changed = tokens.clone()
    changed[0, 3 * 4 + 2 :] = (changed[0, 3 * 4 + 2 :] + 1) % 29
    torch.testing.assert_close(model(changed)[:, :5], model(tokens)[:, :5])
    assert not torch.allclose(model(changed)[:, 5:], model(tokens)[:, 5:])


def test_the_papers_model_has_the_papers_size_and_initial_spread() -> None:
    model = build_model(preset("icl-paper"))
    shapes = {name: tuple(weights.shape) for name, weights in model.named_parameters()}
    blocks = 6 * (4 * 512 * 512 + 2 * 512 * 2048)
    assert sum(math.prod(shape) for shape in shapes.values()) == blocks + 29 * 512 + 13 * 2 * 512
    assert all("norm" in name for name in shapes if "bias" in name)
    for name, weights in model.named_parameters():
        if weights.ndim == 1:
            assert (weights == (0 if name.endswith("bias") else 1)).all()
            continue
        expected = 0.02 / math.sqrt(12) if name.endswith("feedforward_out.weight") else 0.02
        error = expected / math.sqrt(2 * weights.numel())
        assert abs(weights.std().item() - expected) < 4 * error


@pytest.mark.parametrize("name", ["icl-tiny", "icl-medium"])
def test_the_exact_savings_change_nothing(name: str) -> None:
    """Last block at answer positions, joint projections: the textbook pass gives the same."""
    config = preset(name)
    model = build_model(config).double()
    length = config.task.num_examples * config.task.example_length
    tokens = integers(stream_key(0, "t"), config.task.vocabulary_size, (3, length))
    plain = plain_training.plain_logits(model, tokens)
    torch.testing.assert_close(model(tokens), plain, atol=1e-10, rtol=0.0)


def test_flops_are_those_of_the_matrix_products() -> None:
    model, num_heads = small_model(3, torch.float64)
    length, width = 24, 16
    tokens = integers(stream_key(0, "tokens"), 29, (1, length))
    with FlopCounterMode(display=False) as counter:
        plain_logits(model, tokens, num_heads)
    head = 2 * length * width * 29
    # The plain implementation also multiplies what the mask then hides: half of all pairs.
    hidden = 3 * 2 * length**2 * width
    assert model.flops_per_sequence(length) == counter.get_total_flops() - head - hidden


@pytest.mark.parametrize("example_length", [2, 3])
def test_the_last_answer_alone_has_the_features_it_has_among_all(example_length: int) -> None:
    model, _ = small_model(example_length, torch.float64)
    tokens = integers(stream_key(0, "last"), 29, (5, 4 * example_length))
    torch.testing.assert_close(model.last_features(tokens), model.features(tokens)[:, -1:])
