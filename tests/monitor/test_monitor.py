"""The monitor in a training loop: it says what is true, changes nothing, and refuses bad use."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from taught_network import (
    HELD_OUT_X,
    NUM_CLASSES,
    RANDOM_LABELS,
    SEEN_X,
    Teaching,
    taught_labels,
    untaught_network,
)
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import epigrok
from epigrok.errors import UserError
from epigrok.monitor import Event, GrokMonitor, MonitorSettings, StateRule
from epigrok.posteriors import LastLayerLaplace, WeightNoise

WATCHED = {"held out": HELD_OUT_X}


def watched_teaching(labels: Tensor, num_looks: int = 8) -> tuple[Teaching, GrokMonitor]:
    teaching = Teaching(labels)
    monitor = GrokMonitor(teaching.model, seen=SEEN_X, watched=WATCHED)
    for _ in range(num_looks):
        teaching.take(40)
        monitor.update(teaching.step, train_accuracy=teaching.accuracy)
    return teaching, monitor


def test_a_taught_rule_is_announced_and_random_labels_are_not() -> None:
    told: list[Event] = []
    teaching = Teaching(taught_labels(SEEN_X))
    monitor = GrokMonitor(
        teaching.model, SEEN_X, WATCHED, on_event=[told.append, lambda event: None]
    )
    for _ in range(8):
        teaching.take(40)
        reading = monitor.update(teaching.step, train_accuracy=torch.tensor(teaching.accuracy))
    assert monitor.states == {"held out": "generalised"}
    assert told == monitor.events
    assert told[-1].state == "generalised"
    assert reading["held out"].tolerance_ratio > 0.6
    _, other = watched_teaching(RANDOM_LABELS)
    assert other.states == {"held out": "memorising"}
    assert other.readings[-1]["held out"].tolerance_ratio < 0.35


class WithoutLinearHead(nn.Module):
    """Its last layer is a convolution, as in a fully convolutional network."""

    def __init__(self, body: nn.Sequential) -> None:
        super().__init__()
        self.body = body

    def forward(self, x: Tensor) -> Tensor:
        *first, last = self.body
        hidden = nn.Sequential(*first)(x)
        return nn.functional.conv1d(hidden[:, :, None], last.weight[:, :, None], last.bias)[:, :, 0]


@pytest.mark.parametrize(
    ("labels", "state"),
    [(taught_labels(SEEN_X), "generalised"), (RANDOM_LABELS, "memorising")],
    ids=["taught", "random"],
)
def test_a_network_without_a_linear_head_is_read_with_noise_on_all_of_it(
    labels: Tensor, state: str
) -> None:
    teaching = Teaching(labels)
    model = WithoutLinearHead(teaching.model)
    with pytest.raises(UserError, match=r'MonitorSettings\(noise_on="network"\)') as caught:
        GrokMonitor(model, SEEN_X, WATCHED)
    assert "\n" not in str(caught.value)
    settings = MonitorSettings(noise_on="network")
    monitor = GrokMonitor(model, SEEN_X, WATCHED, settings=settings)
    for _ in range(8):
        teaching.take(40)
        reading = monitor.update(teaching.step, train_accuracy=teaching.accuracy)["held out"]
    assert monitor.states == {"held out": state}
    assert 0.0 < reading.calibrated_epistemic_se < reading.calibrated_epistemic
    other = GrokMonitor(model, SEEN_X, WATCHED, settings=settings)
    other.replay(monitor.readings, {})
    assert other.states == monitor.states


def test_one_logit_for_two_classes_is_read_as_the_page_says() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 1))
    monitor = GrokMonitor(
        model,
        SEEN_X,
        WATCHED,
        forward=lambda model, x: nn.functional.pad(model(x), (1, 0)),
        settings=MonitorSettings(noise_on="network", num_rows=300),
    )
    monitor.update(1, train_accuracy=1.0)
    assert monitor.answers["held out"] == tuple((model(HELD_OUT_X)[:, 0] > 0).long().tolist())


def test_without_any_training_metric_it_gates_itself() -> None:
    teaching = Teaching(taught_labels(SEEN_X))
    monitor = GrokMonitor(teaching.model, SEEN_X, WATCHED)
    states = [monitor.update(0)["held out"].state]
    for _ in range(8):
        teaching.take(40)
        states.append(monitor.update(teaching.step)["held out"].state)
    assert states[0] == "fitting"
    assert states[-1] == "generalised"


def test_a_training_loss_will_do() -> None:
    teaching = Teaching(taught_labels(SEEN_X)).take(300)
    monitor = GrokMonitor(teaching.model, SEEN_X, WATCHED)
    for step in range(4):
        monitor.update(step, train_loss=0.01)
    assert monitor.states == {"held out": "generalised"}


def test_a_reading_has_every_number_with_its_error_and_its_cost() -> None:
    teaching = Teaching(taught_labels(SEEN_X)).take(200)
    monitor = GrokMonitor(teaching.model, SEEN_X, WATCHED)
    posterior = WeightNoise.relative(teaching.model, 0.1)
    reading = monitor.update(1, train_accuracy=1.0, posterior=posterior)
    flat = reading.flat()
    for quantity in ("calibrated_epistemic", "posterior_epistemic", "entropy", "confidence"):
        assert 0.0 < flat[f"held out/{quantity}_se"] < flat[f"held out/{quantity}"]
    assert flat["held out/tolerance_ratio"] == pytest.approx(
        flat["held out/tolerance"] / flat["seen/tolerance"]
    )
    assert flat["monitor/seconds"] > 0.0
    assert reading["held out"].posterior_epistemic > reading["seen"].posterior_epistemic


def test_a_posterior_over_the_head_is_read_in_sets_of_several_batches_too() -> None:
    """The head was once looked for in the batches put together, which no layer returned."""
    teaching = Teaching(taught_labels(SEEN_X)).take(100)
    posterior = LastLayerLaplace.fit(teaching.model, [(SEEN_X, taught_labels(SEEN_X))], prior=1.0)
    whole, in_batches = (
        GrokMonitor(teaching.model, seen, WATCHED, settings=MonitorSettings(num_rows=300)).update(
            1, posterior=posterior
        )["seen"]
        for seen in (SEEN_X, list(SEEN_X.split(100)))
    )
    assert in_batches.posterior_epistemic == pytest.approx(whole.posterior_epistemic, rel=1e-5)


def test_a_posterior_that_was_fitted_before_further_training_is_refused() -> None:
    """Its old head was once read on the new features, without a word."""
    teaching = Teaching(taught_labels(SEEN_X)).take(100)
    posterior = LastLayerLaplace.fit(teaching.model, [(SEEN_X, taught_labels(SEEN_X))], prior=1.0)
    teaching.take(20)
    monitor = GrokMonitor(teaching.model, SEEN_X, WATCHED)
    with pytest.raises(UserError, match=r"fitted to .* with other weights"):
        monitor.update(1, train_accuracy=1.0, posterior=posterior)


def test_a_model_too_large_for_one_pass_is_told_to_come_in_batches() -> None:
    def forward(model: nn.Module, x: Tensor) -> Tensor:
        raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(UserError, match="256 inputs of seen at once do not fit into memory"):
        GrokMonitor(untaught_network(), SEEN_X, WATCHED, forward=forward)


def test_a_set_that_is_not_watched_is_answered_with_those_that_are() -> None:
    reading = GrokMonitor(untaught_network(), SEEN_X, WATCHED).update(1, train_accuracy=0.1)
    with pytest.raises(KeyError, match=r"no set is called 'test'; there are: seen, held out"):
        reading["test"]


def test_before_the_first_look_nothing_is_answered() -> None:
    assert GrokMonitor(untaught_network(), SEEN_X, WATCHED).answers == {}


@pytest.mark.parametrize("start", [0, 1])
def test_a_network_that_was_trained_before_is_not_announced_at_once(start: int) -> None:
    """Waiting is relative to the steps so far, and any number is a multiple of zero."""
    teaching = Teaching(taught_labels(SEEN_X)).take(320)
    monitor = GrokMonitor(teaching.model, SEEN_X, WATCHED)
    states = [
        monitor.update(step, train_accuracy=1.0)["held out"].state for step in (start, start + 1)
    ]
    assert states[0] == "generalising"
    assert monitor.update(100, train_accuracy=1.0)["held out"].state == "generalised"
    assert (states[1] == "generalised") == (start > 0)


@pytest.mark.parametrize("confirms", [True, False])
def test_looks_judged_again_end_in_the_same_states(confirms: bool) -> None:
    """Without confirmation they were once judged as if the whole network had been asked."""
    settings = MonitorSettings(confirms=confirms)
    teaching = Teaching(taught_labels(SEEN_X))
    first, again = (
        GrokMonitor(teaching.model, SEEN_X, WATCHED, settings=settings) for _ in range(2)
    )
    for _ in range(8):
        teaching.take(40)
        first.update(teaching.step, train_accuracy=teaching.accuracy)
    stateless = [
        replace(look, sets={name: replace(found, state=None) for name, found in look.sets.items()})
        for look in first.readings
    ]
    again.replay(stateless, {})
    assert again.events == first.events
    assert again.states["held out"] == "generalised"
    assert [look["held out"].state for look in again.readings] == [
        look["held out"].state for look in first.readings
    ]


def test_a_step_may_be_any_whole_number_and_is_saved(tmp_path: Path) -> None:
    monitor = GrokMonitor(untaught_network(), SEEN_X, WATCHED)
    monitor.update(np.int64(3), train_accuracy=0.1)
    monitor.update(torch.tensor(4), train_loss=torch.tensor(2.0, requires_grad=True))
    monitor.save(tmp_path / "monitor.json")
    assert json.loads((tmp_path / "monitor.json").read_text())["table"]["step"] == [3, 3, 4, 4]


def test_looks_made_in_another_way_are_not_gone_on_from(tmp_path: Path) -> None:
    model = untaught_network()
    monitor = GrokMonitor(model, SEEN_X, WATCHED)
    monitor.update(1, train_accuracy=0.1)
    monitor.save(tmp_path / "monitor.json")
    settings = MonitorSettings(rule=StateRule(threshold=0.4), noise_on="network")
    other = GrokMonitor(model, SEEN_X, WATCHED, settings=settings)
    with pytest.raises(
        UserError,
        match=r"another way: noise_on was 'head' and is 'network' here; rule.threshold was 0.37",
    ):
        other.load(tmp_path / "monitor.json")


def test_training_takes_the_same_way_with_and_without_a_monitor() -> None:
    torch.manual_seed(5)
    alone = Teaching(taught_labels(SEEN_X)).take(120)
    after_alone = torch.rand(3)
    torch.manual_seed(5)
    watched = Teaching(taught_labels(SEEN_X))
    loader = DataLoader(TensorDataset(SEEN_X, RANDOM_LABELS), batch_size=64, shuffle=True)
    monitor = GrokMonitor(watched.model, loader, WATCHED)
    for _ in range(12):
        watched.take(10)
        monitor.update(watched.step, train_accuracy=1.0)
    assert monitor.events
    for first, second in zip(
        alone.model.state_dict().values(), watched.model.state_dict().values()
    ):
        assert torch.equal(first, second)
    assert torch.equal(after_alone, torch.rand(3))
    assert watched.model.training


@pytest.mark.parametrize(
    "seen",
    [
        (SEEN_X,),
        {"input": SEEN_X},
        [SEEN_X[:200], SEEN_X[200:]],
        TensorDataset(SEEN_X, RANDOM_LABELS),
        DataLoader(TensorDataset(SEEN_X), batch_size=50, shuffle=True),
    ],
    ids=["tuple", "mapping", "batches", "data set", "loader"],
)
def test_sets_come_in_any_form(seen: Any) -> None:
    model = Teaching(taught_labels(SEEN_X)).take(100).model
    settings = MonitorSettings(num_rows=300)
    plain = GrokMonitor(model, SEEN_X, WATCHED, settings=settings).update(0, train_accuracy=1.0)
    other = GrokMonitor(model, seen, WATCHED, settings=settings).update(0, train_accuracy=1.0)
    assert other["seen"].tolerance == pytest.approx(plain["seen"].tolerance, rel=1e-4)


def test_saving_and_loading_goes_on_with_states_events_and_table(tmp_path: Path) -> None:
    teaching, monitor = watched_teaching(taught_labels(SEEN_X), 3)
    monitor.save(tmp_path / "monitor.json")
    again = GrokMonitor(teaching.model, SEEN_X, WATCHED)
    again.load(tmp_path / "monitor.json")
    assert again.state_dict() == monitor.state_dict()
    teaching.take(40)
    for each in (monitor, again):
        each.update(teaching.step, train_accuracy=teaching.accuracy)
    assert again.events == monitor.events
    assert again.states == monitor.states
    json.loads((tmp_path / "monitor.json").read_text(), parse_constant=_refuse)


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def test_what_cannot_be_loaded_is_said_in_a_sentence(tmp_path: Path) -> None:
    monitor = GrokMonitor(untaught_network(), SEEN_X, WATCHED)
    with pytest.raises(UserError, match="cannot read the monitor saved in"):
        monitor.load(tmp_path / "nowhere.json")
    (tmp_path / "other.json").write_text("[1]")
    with pytest.raises(UserError, match="not a saved monitor"):
        monitor.load(tmp_path / "other.json")


def test_a_saved_monitor_goes_on_with_the_same_watched_inputs_only(tmp_path: Path) -> None:
    model = untaught_network()
    saved = GrokMonitor(model, SEEN_X, WATCHED).state_dict()
    GrokMonitor(model, SEEN_X.flip(0), WATCHED).load_state_dict(saved)
    other = GrokMonitor(model, SEEN_X, {"held out": HELD_OUT_X + 1.0})
    with pytest.raises(UserError, match="watched other inputs of held out"):
        other.load_state_dict(saved)
    with pytest.raises(UserError, match="watched other inputs"):
        other.load_state_dict({**saved, "inputs": None})
    renamed = GrokMonitor(model, SEEN_X, {"kept back": HELD_OUT_X, "new": HELD_OUT_X + 1.0})
    with pytest.raises(UserError, match=r"watched \['held out'\], this one watches"):
        renamed.load_state_dict(saved)


@pytest.mark.parametrize("part", ["table", "standings", "answers", "events", "settings"])
def test_a_saved_monitor_without_one_of_its_parts_is_damaged(part: str) -> None:
    monitor = GrokMonitor(untaught_network(), SEEN_X, WATCHED)
    monitor.update(1)
    with pytest.raises(UserError, match="the saved monitor is damaged"):
        monitor.load_state_dict({**monitor.state_dict(), part: None})


class ForTokens(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.head = nn.Embedding(7, 6), nn.Linear(6, 7)

    def forward(self, tokens: Tensor, scale: Tensor | None = None) -> Tensor:
        hidden = self.embedding(tokens).mean(dim=1)
        return self.head(hidden)


TOKENS = torch.arange(600).view(300, 2) % 7
BAD_USE: dict[str, tuple[Callable[[], Any], str]] = {
    "empty seen": (lambda: GrokMonitor(untaught_network(), SEEN_X[:0], WATCHED), "seen is empty"),
    "empty watched": (
        lambda: GrokMonitor(untaught_network(), SEEN_X, {"held out": HELD_OUT_X[:0]}),
        "held out is empty",
    ),
    "nothing watched": (lambda: GrokMonitor(untaught_network(), SEEN_X, {}), "one set or more"),
    "a set called seen": (
        lambda: GrokMonitor(untaught_network(), SEEN_X, {"seen": HELD_OUT_X}),
        "none 'seen'",
    ),
    "labels as inputs": (
        lambda: GrokMonitor(untaught_network(), RANDOM_LABELS, WATCHED),
        r"cannot be called on seen \(torch.int64 of shape \[256\]\).*without labels",
    ),
    "inputs with labels": (
        lambda: GrokMonitor(untaught_network(), (SEEN_X, RANDOM_LABELS), WATCHED),
        r"cannot be called on seen.*without labels",
    ),
    "labels for an embedding": (
        lambda: GrokMonitor(ForTokens(), RANDOM_LABELS, {"held out": TOKENS}),
        r"cannot be called on seen \(torch.int64 of shape \[256\]\)",
    ),
    "a model that answers otherwise than before": (
        lambda: changed_and_updated(),
        r"for seen the model returned logits of shape \[256, 3\], and \[256, \d+\] before",
    ),
    "a model without parameters": (
        lambda: GrokMonitor(nn.Identity(), SEEN_X, WATCHED),
        "the model has no parameters",
    ),
    "a folder that is not there": (
        lambda: GrokMonitor(untaught_network(), SEEN_X, WATCHED).save("nowhere/monitor.json"),
        "cannot save the monitor in nowhere/monitor.json: No such file or directory",
    ),
    "part of seen": (
        lambda: GrokMonitor(untaught_network(), SEEN_X, {"held out": SEEN_X[100:]}),
        "200 of the 200 inputs of held out are in seen too",
    ),
    "too few rows asked for": (lambda: MonitorSettings(num_rows=10), "num_rows 10 is too few"),
    "an accuracy in percent": (
        lambda: updated(train_accuracy=97.0),
        "train_accuracy must be a share between 0 and 1, got 97",
    ),
    "a negative step": (lambda: updated(step=-1), "step must be a whole number from 0 on, got -1"),
}


def updated(step: Any = 1, **signs: Any) -> None:
    GrokMonitor(untaught_network(), SEEN_X, WATCHED).update(step, **signs)


def changed_and_updated() -> None:
    model = nn.Sequential(untaught_network())
    monitor = GrokMonitor(model, SEEN_X, WATCHED)
    model[0][-1] = nn.Linear(model[0][-1].in_features, 3)
    monitor.update(1)


@pytest.mark.parametrize("case", BAD_USE)
def test_bad_use_is_refused_in_one_sentence(case: str) -> None:
    use, sentence = BAD_USE[case]
    with pytest.raises(UserError, match=sentence) as caught:
        use()
    assert "\n" not in str(caught.value)


def test_an_adapter_that_begins_to_learn_makes_looks_unreadable_and_ends_no_training() -> None:
    """Before its first step a zero adapter beside the head leaves the logits as they are."""

    class Adapted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.adapter = untaught_network(), nn.Linear(SEEN_X.shape[1], NUM_CLASSES)
            nn.init.zeros_(self.adapter.weight)
            nn.init.zeros_(self.adapter.bias)

        def forward(self, x: Tensor) -> Tensor:
            own = self.body(x)
            return own + self.adapter(x)

    model = Adapted()
    monitor = GrokMonitor(model, SEEN_X, WATCHED)
    assert monitor.update(1, train_accuracy=1.0)["held out"].unreadable is None
    before = monitor.states
    nn.init.ones_(model.adapter.weight)
    reading = monitor.update(2, train_accuracy=1.0)["held out"]
    assert "not that of its last linear layer" in str(reading.unreadable)
    assert 'noise_on="network"' in str(reading.unreadable)
    assert reading.entropy > 0.0
    assert monitor.states == before
    assert len(monitor.answers["held out"]) == 256


def test_weights_that_are_not_finite_are_unreadable_and_their_answers_are_lost() -> None:
    teaching, monitor = watched_teaching(taught_labels(SEEN_X), 5)
    assert monitor.states == {"held out": "generalised"}
    with torch.no_grad():
        next(teaching.model.parameters())[0, 0] = torch.nan
    reading = monitor.update(10_000, train_accuracy=1.0)
    assert monitor.states == {"held out": "lost"}
    assert reading["held out"].unreadable == "seen inputs: outputs are not finite"


OF_THE_WRONG_KIND = {
    "MonitorSettings(noise_on='all')": "noise_on must be one of head, network, got 'all'",
    "MonitorSettings(answered='first')": "answered must be one of all, last, got 'first'",
    "GrokMonitor(model, x, {'a': x}, settings={})": "settings must be MonitorSettings(…), got dict",
    "MonitorSettings(num_rows=99.5)": "num_rows must be a whole number, got 99.5",
    "GrokMonitor(model, x, {3: x + 1})": "the names of watched sets must be texts, got 3",
    "GrokMonitor(len, x, {'a': x + 1})": "model must be a torch.nn.Module, got builtin_function",
    "GrokMonitor(model, x, {'a': x + 1}, on_event=3)": "on_event must be a function or a list of",
    "GrokMonitor(model, x, {'a': x + 1}).update(1.5)": "step must be a whole number from 0 on",
}


def test_what_is_of_the_wrong_kind_is_refused_too() -> None:
    # Apart from the tests' own checks of types, which users do not have.
    program = "import torch\nfrom epigrok.monitor import *\n"
    program += "model, x = torch.nn.Linear(2, 2), torch.randn(64, 2)\n"
    for use in OF_THE_WRONG_KIND:
        program += f"try: {use}\nexcept ValueError as error: print(error)\n"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout
    lines = told.splitlines()
    assert len(lines) == len(OF_THE_WRONG_KIND)
    assert all(line.startswith(start) for line, start in zip(lines, OF_THE_WRONG_KIND.values()))


def test_a_loss_that_is_not_finite_is_no_fit() -> None:
    _, monitor = watched_teaching(taught_labels(SEEN_X), 5)
    reading = monitor.update(10_000, train_loss=float("nan"))
    assert "fitted" in str(reading["held out"].unreadable)


def test_few_inputs_are_unreadable_and_say_so() -> None:
    model = Teaching(taught_labels(SEEN_X)).take(100).model
    # Also before the training set is fitted, and where nothing is passed that could say so.
    for step, signs in enumerate(({"train_accuracy": 1.0}, {"train_accuracy": 0.0}, {})):
        reading = GrokMonitor(model, SEEN_X, {"held out": HELD_OUT_X[:30]}).update(step, **signs)
        assert reading["held out"].state == "fitting"
        assert reading["held out"].unreadable == "watched inputs: 30 rows, 64 are needed"


def test_an_exception_inside_a_look_leaves_model_and_history_as_they_were() -> None:
    model, is_broken = untaught_network(), False

    def forward(module: nn.Module, inputs: Tensor) -> Tensor:
        if is_broken:
            module[1].running_mean.zero_()
            raise RuntimeError("the disk is full")
        return module(inputs)

    monitor = GrokMonitor(model, SEEN_X, WATCHED, forward=forward)
    monitor.update(1)
    model[3].eval()
    before = {name: values.clone() for name, values in model.state_dict().items()}
    generator, is_broken = torch.get_rng_state(), True
    with pytest.raises(RuntimeError, match="the disk is full"):
        monitor.update(2)
    assert all(torch.equal(before[name], values) for name, values in model.state_dict().items())
    assert [module.training for module in model] == [True, True, True, False, True]
    assert torch.equal(generator, torch.get_rng_state())
    assert [look.step for look in monitor.readings] == [1]


def test_the_figure_shows_every_watched_set() -> None:
    _, monitor = watched_teaching(taught_labels(SEEN_X), 3)
    (axes,) = monitor.figure().axes
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["held out"]


def test_it_is_a_public_name() -> None:
    assert epigrok.GrokMonitor is GrokMonitor
    assert untaught_network()[-1].out_features == NUM_CLASSES


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"format": 6}, "another version"),
        ({"first features": {}}, "damaged"),
        ({"first features": {"seen": [1, 1, "AAA="], "held out": [1, 1, "AAA="]}}, "damaged"),
    ],
)
def test_what_cannot_be_gone_on_from_leaves_the_monitor_as_it_was(
    change: dict[str, Any], sentence: str
) -> None:
    model = untaught_network()
    other = GrokMonitor(model, SEEN_X, WATCHED)
    other.update(5)
    monitor = GrokMonitor(model, SEEN_X, WATCHED)
    with pytest.raises(UserError, match=sentence):
        monitor.load_state_dict({**other.state_dict(), **change})
    assert monitor.readings == []
    assert monitor.update(1).step == 1


def test_inputs_that_are_all_padding_are_unreadable() -> None:
    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = untaught_network()

        def forward(self, x: Tensor, attention_mask: Tensor) -> Tensor:
            return self.body(x)[:, None].expand(-1, 2, -1)

    masks = [torch.ones(len(SEEN_X), 2).long(), torch.zeros(len(HELD_OUT_X), 2).long()]
    seen, watched = (
        {"x": x, "attention_mask": mask} for x, mask in zip((SEEN_X, HELD_OUT_X), masks)
    )
    reading = GrokMonitor(Masked(), seen, {"held out": watched}).update(1)
    assert "0 rows, 64 are needed" in str(reading["held out"].unreadable)
