"""Rows of tokens, and the noise that a context can carry."""

import torch

from epigrok.random_streams import integers, stream_key
from epigrok.tasks import rows_of_examples, with_context_noise


def test_tokens_of_an_example_stand_together_with_the_answer_last() -> None:
    x, y, z = (torch.tensor([[1, 2], [3, 4]]) + 10 * k for k in range(3))
    batch = rows_of_examples(x, y, z)
    assert batch.tokens_BL.tolist() == [[1, 11, 21, 2, 12, 22], [3, 13, 23, 4, 14, 24]]
    assert torch.equal(batch.answers_BT, z)
    assert batch.is_scored_BT.all()


def test_context_noise_leaves_inputs_query_and_answers_clean() -> None:
    columns = [integers(stream_key(0, name), 29, (4096, 5)) for name in "xyz"]
    batch = rows_of_examples(*columns)
    clean = batch.tokens_BL.unflatten(1, (-1, 3))
    noisy = {}
    for noise in (0.0, 0.3, 0.6, 1.0):
        found = with_context_noise(batch, noise, 29, task_seed=0)
        assert torch.equal(found.answers_BT, batch.answers_BT)
        assert torch.equal(found.is_scored_BT, batch.is_scored_BT)
        rows = noisy[noise] = found.tokens_BL.unflatten(1, (-1, 3))
        assert torch.equal(rows[..., :2], clean[..., :2])
        assert torch.equal(rows[:, -1], clean[:, -1])
        changed = (rows != clean)[:, :-1, 2].double()
        # A uniform token equals the true one with probability 1/29.
        expected = noise * 28 / 29
        assert abs(changed.mean() - expected) < 4 * (0.25 / changed.numel()) ** 0.5
    assert torch.equal(noisy[0.0], clean)
    low, high = noisy[0.3] != clean, noisy[0.6] != clean
    assert (high | ~low).all()
    assert torch.equal(noisy[0.3][low], noisy[0.6][low])
