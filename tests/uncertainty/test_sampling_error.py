"""Standard errors of uncertainties, against what repeated sampling shows."""

import torch
from torch import Tensor

from epigrok.random_streams import normal, stream_key
from epigrok.uncertainty import EntropyStream, ErrorStream, StandardErrors, decompose


def log_probs(number: int, draw: int = 0, scale: float = 1.0) -> Tensor:
    """Predictions for two inputs of four classes under `number` samples."""
    centre = normal(stream_key(1, "centre"), (2, 4)).double()
    noise = normal(stream_key(1, "noise"), (number, 2, 4), draw).double()
    return (centre + scale * noise).log_softmax(dim=-1)


def errors_of(samples: Tensor) -> StandardErrors:
    stream = EntropyStream()
    for sample in samples:
        stream.add(sample)
    errors = ErrorStream(stream.log_mean_probs())
    for sample in samples:
        errors.add(sample)
    return errors.standard_errors()


def test_they_are_the_spread_over_repeated_choices_of_samples() -> None:
    repeats = [decompose(log_probs(64, draw).exp()) for draw in range(400)]
    found = errors_of(log_probs(4096))
    for name in ("total", "aleatoric", "epistemic"):
        spread = torch.stack([getattr(repeat, name) for repeat in repeats]).std(dim=0)
        # 4096 samples have an eighth of the error of 64; a spread of 400 is known to 4 %.
        torch.testing.assert_close(8.0 * getattr(found, name), spread, rtol=0.15, atol=0.0)


def test_they_keep_their_digits_where_samples_hardly_differ() -> None:
    """Shares of the epistemic part grow with the square of a small spread."""
    small, smaller = (errors_of(log_probs(16, scale=scale)).epistemic for scale in (1e-4, 1e-5))
    torch.testing.assert_close(small, 100.0 * smaller, rtol=1e-3, atol=0.0)


def test_one_sample_has_none() -> None:
    assert errors_of(log_probs(1)).total.isnan().all()


def test_an_impossible_class_does_not_spoil_them() -> None:
    possible = log_probs(8)
    padding = torch.full_like(possible[..., :1], -torch.inf)
    found, expected = errors_of(torch.cat([possible, padding], dim=-1)), errors_of(possible)
    torch.testing.assert_close(found.epistemic, expected.epistemic)
    torch.testing.assert_close(found.total, expected.total)
