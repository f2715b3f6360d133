"""Independent Gaussian noise on the weights."""

import torch
from torch import nn

from epigrok.posteriors import DiagonalGaussian
from epigrok.posteriors.gaussian import frozen_tensors

MEAN = {"matrix": torch.tensor([[1.0, -2.0], [3.0, 0.0]]), "vector": torch.tensor([5.0, 6.0])}


def gaussian(scale: float = 1.0, seed: int = 0) -> DiagonalGaussian:
    deviation = {"matrix": scale * torch.tensor([[0.1, 0.2], [0.3, 0.0]])}
    return DiagonalGaussian("made", MEAN, deviation, seed)


def test_samples_have_the_mean_and_the_deviation_of_each_weight() -> None:
    draws = torch.stack([gaussian().sample(index)["matrix"] for index in range(400)])
    whitened = (draws - MEAN["matrix"]) / gaussian().deviation["matrix"]
    whitened = whitened[:, gaussian().deviation["matrix"] > 0]
    # Four standard errors of a mean and of a standard deviation.
    assert whitened.mean(dim=0).abs().max() < 4 / 20
    assert (whitened.std(dim=0) - 1).abs().max() < 4 / 28
    assert (draws[:, 1, 1] == 0.0).all()


def test_what_has_no_deviation_stays() -> None:
    assert torch.equal(gaussian().sample(3)["vector"], MEAN["vector"])


def test_noise_depends_on_seed_name_and_index_alone() -> None:
    def noise(posterior: DiagonalGaussian, index: int) -> torch.Tensor:
        return posterior.sample(index)["matrix"] - MEAN["matrix"]

    torch.testing.assert_close(10 * noise(gaussian(0.1), 2), noise(gaussian(), 2))
    assert not torch.allclose(noise(gaussian(), 2), noise(gaussian(), 3))
    assert not torch.allclose(noise(gaussian(), 2), noise(gaussian(seed=1), 2))


def test_parameters_of_one_shape_have_noise_of_their_own() -> None:
    zero, one = torch.zeros(2, 2), torch.ones(())
    sample = DiagonalGaussian("made", {"a": zero, "b": zero}, {"a": one, "b": one}).sample(0)
    assert not torch.equal(sample["a"], sample["b"])


def test_samples_have_the_type_of_the_weights() -> None:
    mean = {"matrix": MEAN["matrix"].bfloat16()}
    posterior = DiagonalGaussian("coarse", mean, {"matrix": torch.tensor(0.1)})
    assert posterior.sample(0)["matrix"].dtype == torch.bfloat16


def test_frozen_tensors_do_not_follow_the_model() -> None:
    model = nn.Linear(2, 2)
    frozen = frozen_tensors(model)
    kept = {name: weights.clone() for name, weights in frozen.items()}
    with torch.no_grad():
        model.weight += 1.0
    assert all(torch.equal(frozen[name], kept[name]) for name in kept)
    assert not any(weights.requires_grad for weights in frozen.values())
