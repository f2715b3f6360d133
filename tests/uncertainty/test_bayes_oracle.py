"""The exact Bayesian predictors against enumeration, and by hand where the answer is known."""

import dataclasses
import math
from itertools import product

import pytest
import torch
from torch import Tensor

from epigrok.config import EvaluationConfig, RunConfig, TwoParameterTask, preset
from epigrok.config.splits import ID_VAL, OOD_VAL
from epigrok.errors import UserError
from epigrok.evaluation import (
    EvaluationSet,
    evaluate_oracles,
    evaluation_sets,
    score,
    with_oracle,
)
from epigrok.random_streams import normal, stream_key
from epigrok.tasks import build_family, sample_world, with_context_noise
from epigrok.uncertainty import BayesOracle, relative_position, symmetric_divergence


def config_of(modulus: int, num_examples: int) -> RunConfig:
    base = 1 if modulus == 5 else 4
    task = TwoParameterTask(
        modulus=modulus, num_base_tasks=base, num_examples=num_examples, train_fraction=0.6
    )
    return dataclasses.replace(preset("icl-paper"), task=task, batch_size=16)


def enumerated(
    rows: list[list[int]], tasks: list[tuple[int, int]], modulus: int, noise: float
) -> list[list[float]]:
    """Bayes' rule written out: likelihood of every prefix under every task, by plain loops."""
    weights = [1.0] * len(tasks)
    predictions = []
    for start in range(0, len(rows), 3):
        x, y, z = rows[start : start + 3]
        total = math.fsum(weights)
        prediction = [noise / modulus] * modulus
        for weight, (a, b) in zip(weights, tasks):
            prediction[(a * x + b * y) % modulus] += (1 - noise) * weight / total
        predictions.append(prediction)
        weights = [
            weight * ((1 - noise) * ((a * x + b * y) % modulus == z) + noise / modulus)
            for weight, (a, b) in zip(weights, tasks)
        ]
    return predictions


@pytest.mark.parametrize("modulus", [5, 7])
@pytest.mark.parametrize(
    ("noise", "corruption"), [(1e-3, 0.0), (0.2, 0.2), (1e-3, 0.5), (1.0, 1.0)]
)
def test_predictions_equal_enumeration_at_every_context_length(
    modulus: int, noise: float, corruption: float
) -> None:
    config = config_of(modulus, 7)
    world = sample_world(config.task, 0)
    family = build_family(config, world)
    for split in config.task.splits:
        batch = family.evaluation_batch(split, 20, 7)
        batch = with_context_noise(batch, corruption, modulus, task_seed=0)
        oracle = with_oracle(config, family, batch, noise).oracle
        assert oracle is not None
        trained = [tuple(task) for task in world["train_tasks"].tolist()]
        everything = list(product(range(modulus), repeat=2))
        for tasks, log_probs in (
            (trained, oracle.memorising_BTC),
            (everything, oracle.generalising_BTC),
        ):
            expected = torch.tensor(
                [enumerated(row, tasks, modulus, noise) for row in batch.tokens_BL.tolist()],
                dtype=torch.float64,
            )
            torch.testing.assert_close(log_probs.exp(), expected, rtol=1e-10, atol=1e-12)


def sets_of(config: RunConfig) -> dict[str, EvaluationSet]:
    return evaluation_sets(config, build_family(config, sample_world(config.task, 0)))


def test_without_examples_the_generaliser_knows_almost_nothing() -> None:
    """Context length 1: z = ax + by is uniform over tasks unless x = y = 0, where it is 0."""
    config = config_of(7, 3)
    rows = sets_of(config)["id_val"]
    assert rows.oracle is not None
    log_probs = rows.oracle.generalising_BTC[:, 0]
    inputs = rows.batch.tokens_BL[:, :2]
    is_origin = (inputs == 0).all(dim=1)
    entropy = -(log_probs.exp() * log_probs).sum(-1)
    assert (entropy[~is_origin] - math.log(7)).abs().max() < 1e-12
    e = 1e-3
    certain = 1 - e + e / 7
    expected = -certain * math.log(certain) - 6 * (e / 7) * math.log(e / 7)
    assert is_origin.any()
    assert (entropy[is_origin] - expected).abs().max() < 1e-12


def test_two_independent_examples_tell_the_task() -> None:
    """Support p², p, 1 after 0, 1, 2 independent examples: entropy ln p, ln p, then the noise."""
    p, e = 29, 1e-6
    residues = torch.arange(p)
    first, second = (grid.flatten() for grid in torch.meshgrid(residues, residues, indexing="ij"))
    oracle = BayesOracle((first[:, None] * first + second[:, None] * second) % p, p, noise=e)
    # Inputs (1, 0), (0, 1), (3, 5) under the task (4, 7).
    inputs = torch.tensor([[1 * p + 0, 0 * p + 1, 3 * p + 5]])
    shown = torch.tensor([[4, 7, (12 + 35) % p]])
    log_probs = oracle.log_probs(inputs, shown)[0]
    entropy = -(log_probs.exp() * log_probs).sum(-1)
    assert entropy[0].item() == pytest.approx(math.log(p))
    assert entropy[1].item() == pytest.approx(math.log(p), abs=1e-3)
    assert entropy[2].item() < 1e-3
    assert log_probs[2].argmax() == (12 + 35) % p


def test_relabelling_tasks_and_inputs_together_changes_nothing() -> None:
    """(a, b)·(x, y) is invariant under (a, b) → (a, b)M, (x, y) → M⁻¹(x, y)."""
    p = 7
    residues = torch.arange(p)
    grid = torch.stack(torch.meshgrid(residues, residues, indexing="ij"), -1).view(-1, 2)
    oracle = BayesOracle((grid @ grid.T) % p, p)
    inputs = torch.tensor([[3 * p + 1, 2 * p + 6, 5 * p + 5, 1 * p + 4]])
    shown = torch.tensor([[2, 2, 6, 1]])
    inverse = torch.tensor([[2, 1], [1, 1]])
    turned = (grid[inputs[0]] @ inverse.T) % p
    turned_inputs = (turned[:, 0] * p + turned[:, 1])[None]
    torch.testing.assert_close(
        oracle.log_probs(inputs, shown), oracle.log_probs(turned_inputs, shown)
    )


def test_a_model_that_is_the_oracle_has_no_distance_to_it() -> None:
    rows = sets_of(config_of(7, 5))["ood_val"]
    oracle = rows.oracle
    assert oracle is not None
    for log_probs, own, position in (
        (oracle.memorising_BTC, "kl_memorising", 1.0),
        (oracle.generalising_BTC, "kl_generalising", -1.0),
    ):
        summary = score([log_probs], rows.batch, oracle).summary()
        assert abs(summary[own]) < 1e-12
        assert summary["relative_position"] == pytest.approx(position)
    mixture = 0.5 * (oracle.memorising_BTC.exp() + oracle.generalising_BTC.exp())
    assert abs(score([mixture.log()], rows.batch, oracle).summary()["relative_position"]) < 0.6


def test_the_symmetric_divergence_is_the_mean_of_both_directions() -> None:
    p, q = (normal(stream_key(0, name), (4, 9)).double().softmax(-1) for name in "pq")
    forward = (p * (p / q).log()).sum(-1)
    backward = (q * (q / p).log()).sum(-1)
    torch.testing.assert_close(symmetric_divergence(p.log(), q.log()), (forward + backward) / 2)


Metrics = dict[tuple[str, str], dict[str, Tensor]]


def by_split_and_posterior(sets: dict[str, EvaluationSet]) -> Metrics:
    return {(row.split, row.posterior): row.per_context_length for row in evaluate_oracles(sets)}


def test_the_papers_task_has_the_known_reference_values() -> None:
    """p = 29, e = 1e-3: the memoriser is confident and wrong on unseen tasks."""
    task = TwoParameterTask(num_base_tasks=8)
    config = dataclasses.replace(
        preset("icl-paper"), task=task, evaluation=EvaluationConfig(num_sequences=256)
    )
    family = build_family(config, sample_world(task, 0))
    found = by_split_and_posterior(evaluation_sets(config, family, splits=(ID_VAL, OOD_VAL)))
    generaliser = found["ood_val", "oracle-generalising"]
    assert generaliser["accuracy"][0] < 0.10
    assert 0.02 < generaliser["accuracy"][1] < 0.13
    assert generaliser["accuracy"][2] > 0.90
    assert generaliser["accuracy"][31] == 1.0
    assert generaliser["total"][31].item() == pytest.approx(0.011, abs=0.002)
    assert found["id_val", "oracle-memorising"]["accuracy"][31] == 1.0
    memoriser = found["ood_val", "oracle-memorising"]
    assert memoriser["accuracy"][31] < 0.08
    assert 0.5 < memoriser["total"][31] < 1.2
    assert memoriser["nll"][31] > 8


def test_the_one_parameter_family_has_oracles_and_the_classic_has_none() -> None:
    tiny = by_split_and_posterior(sets_of(preset("icl-tiny")))
    rows = tiny["ood_val", "oracle-generalising"]
    assert rows["accuracy"][0] < 0.2
    assert (rows["accuracy"][1:] == 1.0).all()
    assert evaluate_oracles(sets_of(preset("classic"))) == []


@pytest.mark.parametrize("noise", [0.0, -0.1, 1.1])
def test_impossible_noise_is_refused(noise: float) -> None:
    with pytest.raises(UserError, match=str(noise)):
        BayesOracle(torch.zeros(2, 2, dtype=torch.int64), 5, noise)


def test_predictors_can_be_done_without_where_their_table_would_be_too_large() -> None:
    config = config_of(251, 4)
    family = build_family(config, sample_world(config.task, 0))
    batch = family.evaluation_batch(ID_VAL, 16, 4)
    with pytest.raises(UserError, match="oracle_noise to 0"):
        with_oracle(config, family, batch)
    assert with_oracle(config, family, batch, noise=0.0).oracle is None


@pytest.mark.parametrize("noise", [1e-308, 5e-324])
def test_the_tiniest_noise_makes_no_other_prediction(noise: float) -> None:
    answers = torch.tensor([[0, 1], [1, 1], [2, 0]])
    inputs, shown = torch.tensor([[0, 1]]), torch.tensor([[1, 1]])
    probs = BayesOracle(answers, 3, noise).log_probs(inputs, shown).exp()
    expected = torch.tensor([[[1 / 3, 1 / 3, 1 / 3], [0.0, 1.0, 0.0]]], dtype=torch.float64)
    torch.testing.assert_close(probs, expected)


def test_the_asked_answer_may_be_cleaner_than_the_shown_ones() -> None:
    """Two hypotheses, one match: the weights know e, the prediction q."""
    answers = torch.tensor([[0, 1], [1, 2]])
    oracle = BayesOracle(answers, 3, noise=0.3, asked_noise=0.06)
    probs = oracle.log_probs(torch.tensor([[0, 1]]), torch.tensor([[0, 1]])).exp()[0, 1]
    right, wrong = 1 - 0.3 + 0.1, 0.1
    weight = right / (right + wrong)
    expected = torch.tensor([0.0, weight, 1 - weight], dtype=torch.float64) * 0.94 + 0.02
    torch.testing.assert_close(probs, expected)


@pytest.mark.parametrize(
    ("to_generaliser", "to_memoriser", "position"),
    [(0.0, 2.0, -1.0), (2.0, 0.0, 1.0), (1.0, 1.0, 0.0), (3.0, 0.5, 1.0)],
)
def test_positions_between_the_predictors_stay_within_one(
    to_generaliser: float, to_memoriser: float, position: float
) -> None:
    found = relative_position(*map(torch.tensor, (to_generaliser, to_memoriser, 2.0)))
    assert found.item() == position


def test_how_rows_are_cut_changes_no_prediction(monkeypatch: pytest.MonkeyPatch) -> None:
    config = config_of(5, 4)
    family = build_family(config, sample_world(config.task, 0))
    batch = family.evaluation_batch(ID_VAL, 20, 4)
    whole = with_oracle(config, family, batch).oracle
    monkeypatch.setattr("epigrok.uncertainty.bayes_oracle.ELEMENTS_PER_CHUNK", 300)
    cut = with_oracle(config, family, batch).oracle
    assert whole is not None
    assert cut is not None
    assert torch.equal(whole.generalising_BTC, cut.generalising_BTC)


@pytest.mark.parametrize("wrong", [-1, 5])
def test_inputs_that_do_not_exist_are_refused(wrong: int) -> None:
    """A negative one was once taken from the end."""
    oracle = BayesOracle(torch.arange(5)[None], num_classes=5)
    with pytest.raises(UserError, match=f"from 0 to 4, got .*{wrong}"):
        oracle.log_probs(torch.tensor([[0, wrong]]), torch.tensor([[0, 1]]))
