"""Posteriors come back from their files as they were."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import epigrok
from epigrok.errors import UserError
from epigrok.posteriors import (
    IVON,
    DiagonalLaplace,
    Ensemble,
    ExactLaplace,
    LastLayerLaplace,
    MCDropout,
    Point,
    ProbitLaplace,
    Sample,
    WeightNoise,
    load_posterior,
    save_posterior,
)

INPUTS = torch.randn(6, 4, generator=torch.Generator().manual_seed(1))
LOADER = [(INPUTS, torch.tensor([0, 1, 2, 0, 1, 2]))]


def network(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 3))


def posteriors(model: nn.Module) -> list[Any]:
    laplace = LastLayerLaplace.fit(model, LOADER)
    return [
        Point.of(model),
        WeightNoise.relative(model, 0.1, seed=3),
        IVON(model.parameters(), 0.1, 10.0).posterior(model, seed=2),
        laplace,
        ProbitLaplace(laplace),
        ExactLaplace.fit(model, LOADER),
        DiagonalLaplace.fit(model, LOADER),
        Ensemble.of([model, network(1)]),
        MCDropout.of(model, seed=5),
    ]


@pytest.mark.parametrize("index", range(9))
def test_a_posterior_predicts_the_same_after_saving(index: int, tmp_path: Path) -> None:
    model = network()
    posterior = posteriors(model)[index]
    posterior.save(tmp_path / "posterior.safetensors")
    again = load_posterior(tmp_path / "posterior.safetensors")
    assert type(again) is type(posterior)
    assert repr(again) == repr(posterior)
    expected = epigrok.predict(model, posterior, INPUTS, num_samples=3)
    found = epigrok.predict(model, again, INPUTS, num_samples=3)
    # The same numbers come back in another order in memory, which may move a product's last digit.
    torch.testing.assert_close(found.probs, expected.probs, rtol=1e-14, atol=1e-15)
    torch.testing.assert_close(found.epistemic, expected.epistemic, rtol=1e-12, atol=1e-14)


@dataclass(frozen=True)
class Blend:
    """A posterior of one's own, made of others."""

    parts: tuple[Point, ...]
    name: str = "blend"
    max_samples: int = 2

    def sample(self, index: int) -> Sample:
        return self.parts[index].sample(0)


def test_a_posterior_of_ones_own_class_is_read_where_the_class_is_passed(tmp_path: Path) -> None:
    path = tmp_path / "posterior.safetensors"
    posterior = Blend((Point.of(network()), Point.of(network(1))))
    save_posterior(posterior, path)
    with pytest.raises(UserError, match=r"no 'Blend' to read from a file; .* pass it in `classes`"):
        load_posterior(path)
    again = load_posterior(path, classes=[Blend])
    assert isinstance(again, Blend)
    expected, found = (epigrok.predict(network(), p, INPUTS).probs for p in (posterior, again))
    torch.testing.assert_close(found, expected, rtol=1e-14, atol=1e-15)


def test_a_half_precision_head_stays_one(tmp_path: Path) -> None:
    model = network().bfloat16()
    laplace = LastLayerLaplace.fit(model, [(INPUTS.bfloat16(), LOADER[0][1])], prior=1.0)
    laplace.save(tmp_path / "p.safetensors")
    assert load_posterior(tmp_path / "p.safetensors").sample(0)["3.weight"].dtype == torch.bfloat16


def test_a_failed_save_leaves_the_old_posterior(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(tensors: Any, path: Path, header: Any) -> None:
        path.write_bytes(b"half")
        raise OSError("disk full")

    path = tmp_path / "posterior.safetensors"
    Point.of(network()).save(path)
    monkeypatch.setattr("epigrok.tensor_files.save_file", fail)
    with pytest.raises(UserError, match=r"cannot write .*: disk full"):
        Point.of(network(1)).save(path)
    assert torch.equal(load_posterior(path).tensors["0.weight"], network()[0].weight)
    assert [item.name for item in tmp_path.iterdir()] == [path.name]


def test_a_place_that_cannot_be_written_to_is_said_in_a_sentence(tmp_path: Path) -> None:
    place = tmp_path / "nowhere" / "posterior.safetensors"
    with pytest.raises(UserError, match=f"cannot write {place}: No such file or directory"):
        save_posterior(Point.of(nn.Linear(2, 2)), place)


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.safetensors"
    with pytest.raises(UserError, match="cannot read"):
        load_posterior(path)
    save_file({"weight": torch.zeros(2)}, path)
    with pytest.raises(UserError, match="not a file of the format epigrok-posterior-1"):
        load_posterior(path)
    path.write_bytes(b"nothing")
    with pytest.raises(UserError, match="cannot read"):
        load_posterior(path)
    header = {"format": "epigrok-posterior-1", "record": '{"class": "IVON", "fields": {}}'}
    save_file({}, path, header)
    with pytest.raises(UserError, match="has no 'IVON'"):
        load_posterior(path)
