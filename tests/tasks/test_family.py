"""What every family promises, and which one answers for which settings."""

from dataclasses import replace

import pytest
import torch
from small_tasks import family_of, one_parameter_run, two_parameter_run

from epigrok.config import (
    ClassicTask,
    OneParameterTask,
    RunConfig,
    TaskConfig,
    TwoParameterTask,
    preset,
)
from epigrok.config.splits import ID_TRAIN, ID_VAL
from epigrok.errors import UserError
from epigrok.tasks import (
    Hypotheses,
    InContextFamily,
    TaskFamily,
    build_family,
    register_task,
    sample_world,
)

RUNS = {
    "classic": preset("classic"),
    "one parameter": one_parameter_run(),
    "two parameters": two_parameter_run(),
    "two parameters, inputs of their own": two_parameter_run(
        task=replace(two_parameter_run().task, shares_inputs=False)
    ),
}


@pytest.fixture(params=RUNS)
def config(request: pytest.FixtureRequest) -> RunConfig:
    return RUNS[request.param]


def test_worlds_are_functions_of_the_task_seed() -> None:
    for task in (TwoParameterTask(num_base_tasks=8), OneParameterTask(), ClassicTask()):
        first, again, other = (sample_world(task, seed) for seed in (4, 4, 5))
        assert all(torch.equal(first[name], again[name]) for name in first)
        assert any(not torch.equal(first[name], other[name]) for name in first)


def test_batch_k_is_a_function_of_the_run_seed_and_k(config: RunConfig) -> None:
    family = family_of(config)
    later = family.training_batch(9).tokens_BL
    assert len(later) == config.batch_size
    family.training_batch(3)
    assert torch.equal(later, family.training_batch(9).tokens_BL)
    assert torch.equal(later, family.training_batch(torch.tensor(9)).tokens_BL)
    assert not torch.equal(later, family.training_batch(10).tokens_BL)
    reseeded = build_family(replace(config, run_seed=1), family.world)
    assert not torch.equal(later, reseeded.training_batch(9).tokens_BL)


def test_evaluation_sequences_are_functions_of_the_task_seed(config: RunConfig) -> None:
    family = family_of(config)
    for split in config.task.splits:
        tokens = family.evaluation_batch(split, 64, config.task.num_examples).tokens_BL
        reseeded = build_family(replace(config, run_seed=1), family.world)
        again = reseeded.evaluation_batch(split, 64, config.task.num_examples).tokens_BL
        assert torch.equal(tokens, again)
    other = family_of(replace(config, task_seed=1))
    batches = (f.evaluation_batch(ID_VAL, 64, config.task.num_examples) for f in (family, other))
    first, second = (batch.tokens_BL for batch in batches)
    assert first.shape != second.shape or not torch.equal(first, second)


def test_only_tasks_with_a_context_have_exact_predictors(config: RunConfig) -> None:
    family = family_of(config)
    assert isinstance(family, TaskFamily)
    assert isinstance(family, InContextFamily) == (config.task.num_examples > 1)


@pytest.mark.parametrize("name", [name for name in RUNS if name != "classic"])
def test_the_table_of_answers_explains_what_sequences_show(name: str) -> None:
    config = RUNS[name]
    family = family_of(config)
    assert isinstance(family, InContextFamily)
    considered = family.hypotheses()
    assert considered.is_trained_A.sum() == len(family.world["train_tasks"])
    batch = family.evaluation_batch(ID_TRAIN, 16, config.task.num_examples)
    inputs_BT, shown_BT = family.observed(batch)
    assert torch.equal(shown_BT, batch.answers_BT)
    explains_AB = (considered.answers_AN[:, inputs_BT] == shown_BT).all(dim=-1)
    assert explains_AB[considered.is_trained_A].any(dim=0).all()
    assert not explains_AB.all(dim=0).any()


@pytest.mark.parametrize("number", [-1, 10**6])
def test_a_world_with_an_impossible_number_is_refused(config: RunConfig, number: int) -> None:
    for name in family_of(config).world:
        world = sample_world(config.task, config.task_seed)
        world[name].view(-1)[0] = number
        with pytest.raises(UserError, match=rf"is damaged: its {name} has a number outside 0 to"):
            build_family(config, world)


def test_a_world_of_another_form_is_refused(config: RunConfig) -> None:
    world = sample_world(config.task, config.task_seed)
    name = min(world)
    for other, told in (
        (world[name].float(), rf"its {name} is torch\.float32 of shape .*, not torch\.int64"),
        (world[name][:-1], rf"its {name} is torch\.int64 of shape"),
    ):
        with pytest.raises(UserError, match=told):
            build_family(config, world | {name: other})
    with pytest.raises(UserError, match=r"is damaged: it holds .*, not "):
        build_family(config, {name: world[name]})


def test_hypotheses_mark_what_was_trained() -> None:
    table = torch.arange(12).view(4, 3)
    marked = Hypotheses.of(table, torch.tensor([2, 0]))
    assert marked.is_trained_A.tolist() == [True, False, True, False]
    assert torch.equal(marked.answers_AN, table)


def test_settings_without_a_family_are_refused_with_those_that_have_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(TaskConfig, "kinds", dict(TaskConfig.kinds))

    class Unheard(ClassicTask):
        """No family answers for it."""

    with pytest.raises(UserError, match=r"no task named 'Unheard'; there are: .*ClassicTask"):
        sample_world(Unheard(), 0)


def test_a_family_cannot_take_anothers_settings() -> None:
    class Mine:
        """Answers for nothing yet."""

    sample_world(ClassicTask(), 0)
    with pytest.raises(UserError, match=r"'ClassicTask' is registered already, by epigrok\.tasks"):
        register_task(ClassicTask)(Mine)
