"""Kinds of posteriors by name: what exists, for which runs, and what is refused."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from trained_run import Trained

from epigrok.config import MuonConfig, RunConfig, preset
from epigrok.errors import UserError
from epigrok.evaluation import tracked_posteriors
from epigrok.posteriors import (
    FitData,
    FitRequest,
    Point,
    Posterior,
    fit_posterior,
    kind_of,
    posterior_kinds,
    register_posterior,
    require_posteriors,
)


def tracking(config: RunConfig, *posteriors: str) -> RunConfig:
    return replace(config, evaluation=replace(config.evaluation, posteriors=posteriors))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("laplase", r"no posterior named 'laplase'; there are: .*laplace.*weight-noise"),
        ("weight-noise", r"'weight-noise' needs a number after the colon"),
        ("weight-noise:x", r"'weight-noise:x' needs a number after the colon"),
        ("weight-noise:-1", r"'weight-noise:-1' needs a positive number"),
        ("weight-noise:inf", r"'weight-noise:inf' needs a positive number"),
        ("weight-noise:nan", r"'weight-noise:nan' needs a positive number"),
        ("weight-noise:1e-310", r"'weight-noise:1e-310' needs a positive number"),
        ("point:3", r"'point' takes no value, got 'point:3'"),
        ("ivon:3", r"'ivon' takes no value"),
        ("laplace:0", r"'laplace:0' needs a positive number"),
        ("laplace:1e-320", r"'laplace:1e-320' needs a positive number"),
        ("laplace:soon", r"'laplace:soon' needs a number"),
        ("oracle-memorising", r"no posterior named 'oracle-memorising'"),
    ],
)
def test_names_that_mean_nothing_are_refused(name: str, message: str, trained: Trained) -> None:
    config = preset("classic-ivon")
    with pytest.raises(UserError, match=message):
        require_posteriors(tracking(config, "point", name))
    with pytest.raises(UserError, match=message):
        require_posteriors(config, (name,))
    with pytest.raises(UserError, match=message):
        trained.fitted(name)


def test_a_prior_needs_weight_decay_or_a_number() -> None:
    config = replace(preset("icl-tiny"), optim=MuonConfig(adamw_weight_decay=0.0))
    require_posteriors(tracking(config, "laplace:1", "laplace:evidence", "laplace-exact:2"))
    for name in ("laplace", "laplace-exact", "laplace-probit"):
        message = f"'{name}' takes the head's weight decay .* is 0 here; .* as in '{name}:1'"
        with pytest.raises(UserError, match=message):
            require_posteriors(tracking(config, name))


def test_roles_say_where_the_spread_comes_from() -> None:
    roles = {name: kind.role for name, kind in posterior_kinds().items()}
    assert (
        roles
        | {
            "point": "point",
            "laplace-probit": "point",
            "laplace": "inferred",
            "laplace-exact": "inferred",
            "ivon": "inferred",
            "ivon-isotropic": "control",
            "weight-noise": "control",
        }
        == roles
    )
    assert kind_of("weight-noise:0.3").role == "control"


def test_a_kind_of_ones_own_is_made_by_its_own_function_and_nobody_elses(trained: Trained) -> None:
    seen: list[FitRequest] = []

    @register_posterior("twice", role="point", read_argument=lambda name: 2 * int(name.argument))
    def fit_twice(request: FitRequest) -> Posterior:
        seen.append(request)
        return Point({"doubled": 2.0 * request.model.head_weight.detach()}, request.name.text)

    (posterior,) = trained.fitted("twice:4")
    assert (seen[0].value, seen[0].name.text) == (8, "twice:4")
    assert (seen[0].task, seen[0].optim) == (trained.config.task, trained.config.optim)
    assert posterior.name == "twice:4"
    assert torch.equal(posterior.sample(0)["doubled"], 2.0 * trained.model.head_weight)


def test_a_kind_cannot_take_anothers_name() -> None:
    with pytest.raises(UserError, match=r"'laplace' is registered already, by epigrok\.post"):
        register_posterior("laplace")(lambda request: Point.of(request.model))


def test_posteriors_of_one_network_share_its_curvature(trained: Trained) -> None:
    passes = []

    def answers() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        passes.append(1)
        batch = trained.sets["id_train"].batch
        with torch.no_grad():
            features_BTD = trained.model.features(batch.tokens_BL)
        yield features_BTD.flatten(end_dim=1), batch.answers_BT.flatten()

    data = FitData(trained.model, answers)
    shared = [
        fit_posterior(name, data, trained.config)
        for name in ("point", "laplace", "laplace:evidence", "laplace-probit", "laplace:3")
    ]
    assert len(passes) == 1
    names = ("laplace", "laplace:evidence")
    fit_set = trained.sets["id_train"]
    alone = tracked_posteriors(trained.config, trained.model, fit_set, names=names)
    for one, other in zip(shared[1:3], alone, strict=True):
        torch.testing.assert_close(one.sample_head(0), other.sample_head(0))
