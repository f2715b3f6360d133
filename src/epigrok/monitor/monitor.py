"""`GrokMonitor`: looks at a model now and then while it trains, and says whether it generalises."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any, SupportsIndex

from torch import Tensor, nn

from epigrok.errors import UserError
from epigrok.monitor.by_heart import Predictability, features_from_json
from epigrok.monitor.fit import SignsOfFit
from epigrok.monitor.history import History
from epigrok.monitor.measuring import (
    SEEN,
    HeadDraws,
    Mean,
    SetMeasure,
    measure,
    measure_network,
    measure_without_noise,
)
from epigrok.monitor.noise import NoisyNetwork
from epigrok.monitor.past_answers import AnswersOfSets
from epigrok.monitor.readings import Event, MonitorReading
from epigrok.monitor.sets.inputs import require_apart
from epigrok.monitor.sets.set_rows import ModelCall, SetRows
from epigrok.monitor.sets.taking import taken
from epigrok.monitor.settings import MonitorSettings
from epigrok.monitor.tolerance import Tolerance, ToleranceRatio, tolerance_ratio
from epigrok.monitor.trying import explained, require_model, tried
from epigrok.posteriors.calling import Forward
from epigrok.posteriors.head import HeadInputs, NoHeadError
from epigrok.posteriors.protocol import Posterior, require_posterior
from epigrok.uncertainty import EntropyStream, log_probabilities

OnEvent = Callable[[Event], object]


class GrokMonitor:
    """Says of each watched set whether the model has generalised to it; no label is used.

    ```python
    monitor = epigrok.GrokMonitor(model, seen=x_train, watched={"held out": x_val})
    reading = monitor.update(step, train_accuracy=accuracy)
    ```

    The model, its mode, its gradients and the global random generators are left as they were, also
    after an exception: a monitor never changes training.
    """

    def __init__(
        self,
        model: nn.Module,
        seen: Any,
        watched: Mapping[str, Any],
        *,
        forward: Forward | None = None,
        settings: MonitorSettings | None = None,
        on_event: OnEvent | Sequence[OnEvent] = (),
    ) -> None:
        """Take the inputs of all sets and try the model on them.

        Args:
            model: Any network that returns logits. Train on; the monitor looks at it.
            seen: Inputs that the model is trained on: see `monitor/sets/taking.py` for the kinds.
            watched: Name -> inputs that it is not trained on.
            forward: Calls the model on a batch of inputs and returns the logits.
            settings: How to look.
            on_event: Called when a watched set changes its state.
        """
        if settings is not None and not isinstance(settings, MonitorSettings):
            raise UserError(f"settings must be MonitorSettings(…), got {type(settings).__name__}")
        self._settings = settings or MonitorSettings()
        model = require_model(model)
        self._call = ModelCall(model=model, forward=forward, head=self._settings.head)
        self._on_event = [on_event] if callable(on_event) else on_event
        if not isinstance(self._on_event, Sequence) or not all(map(callable, self._on_event)):
            raise UserError(f"on_event must be a function or a list of them, got {on_event!r}")
        if not isinstance(watched, Mapping) or not watched or SEEN in watched:
            found = list(watched) if isinstance(watched, Mapping) else type(watched).__name__
            raise UserError(
                f"watched must name one set or more, as in {{'held out': inputs}}, and none "
                f"{SEEN!r}, got {found}"
            )
        if others := [name for name in watched if not isinstance(name, str)]:
            raise UserError(f"the names of watched sets must be texts, got {others[0]!r}")
        sets = {name: taken(source, name, self._settings.num_rows)
                for name, source in {SEEN: seen, **watched}.items()}  # fmt: skip
        for name in watched:
            require_apart(sets[name], sets[SEEN])
        self._rows = {
            name: SetRows(inputs, self._settings.answered, self._settings.num_rows)
            for name, inputs in sets.items()
        }
        self._draws = HeadDraws(self._settings.tolerance)
        self._history = History(tuple(watched), self._settings.rule)
        has_head = self._settings.noise_on == "head"
        first = {n: tried(n, rows, self._call, has_head) for n, rows in self._rows.items()}
        inputs = {name: found for name, found in first.items() if found is not None}
        share = self._settings.rule.by_heart_share
        self._predictability = Predictability(self._rows, inputs, share)

    def update(
        self,
        step: SupportsIndex,
        *,
        train_accuracy: float | Tensor | None = None,
        train_loss: float | Tensor | None = None,
        posterior: Posterior | None = None,
    ) -> MonitorReading:
        """Look at all sets.

        Args:
            step: Updates taken so far, since training began: not since a checkpoint was loaded.
            train_accuracy: Between 0 and 1, on training data as they are: not augmented, not mixed,
                and best with dropout off. Says that the training set is fitted.
            train_loss: Mean cross-entropy on training data, for those without an accuracy; without
                label smoothing. With neither the model's confidence on the seen inputs is used.
            posterior: Read its epistemic uncertainty too.
        """
        started = perf_counter()
        step = self._history.require_later(step)
        if posterior is not None:
            require_posterior(posterior)
        fit = SignsOfFit.given(train_accuracy, train_loss)
        measured = self._predictability.added_to(self._measured())
        if posterior is not None:
            measured = {
                name: replace(found, posterior_epistemic=self._posterior_epistemic(name, posterior))
                for name, found in measured.items()
            }
        num_events = len(self.events)
        self._history.add(step, measured, fit, self._network_ratio(measured))
        reading = self._history.record_seconds(perf_counter() - started)
        for event in self.events[num_events:]:
            for tell in self._on_event:
                tell(event)
        return reading

    @property
    def events(self) -> list[Event]:
        """Every change of a state so far: (watched, state, step)."""
        return self._history.events

    @property
    def readings(self) -> list[MonitorReading]:
        """Every look so far."""
        return self._history.readings

    @property
    def states(self) -> dict[str, str]:
        """Where each watched set stands now."""
        return {name: standing.state for name, standing in self._history.standings.items()}

    def table(self) -> dict[str, list[Any]]:
        """All looks as columns, one row per look and set: `pandas.DataFrame(monitor.table())`."""
        return self._history.table()

    def figure(self) -> Any:
        """The ratios over training, with every announcement, as a matplotlib figure."""
        from epigrok.monitor.drawing import draw_history

        return draw_history(self._history, self._settings.rule)

    def save(self, path: Path | str) -> None:
        """Write all looks to a JSON file, for `load`."""
        from epigrok.files import write_json

        try:
            write_json(Path(path), self.state_dict())
        except OSError as error:
            raise UserError(f"cannot save the monitor in {path}: {error.strerror}") from error

    def load(self, path: Path | str) -> None:
        """Go on from a saved file: of this monitor's sets, in another process."""
        from epigrok.files import read_json

        try:
            values = read_json(Path(path))
        except (OSError, ValueError) as error:
            raise UserError(f"cannot read the monitor saved in {path}: {error}") from error
        self.load_state_dict(values)

    def state_dict(self) -> dict[str, Any]:
        """All looks, for a checkpoint: numbers, texts, lists and dictionaries only."""
        return {
            **self._history.to_json(),
            "inputs": self._watched_digests(),
            "seen": self._rows[SEEN].digest,
            "settings": asdict(self._settings),
            "first features": self._predictability.to_json(),
        }

    def load_state_dict(self, values: Any) -> None:
        """Go on from what `state_dict` returned, with the same watched inputs and settings."""
        self._history.require_saved(values, self._watched_digests())
        if not isinstance(saved := values.get("settings"), Mapping):
            raise UserError(f"the saved monitor is damaged: its settings are {saved!r}")
        self._settings.require_like(saved)
        is_same = values.get("seen") == self._rows[SEEN].digest
        predictability = self._predictability
        if is_same:
            features = features_from_json(values.get("first features"))
            predictability = predictability.going_on(features)
        self._history.restore(values)
        self._predictability = predictability
        if not is_same:
            # Rows that were not seen then have features of now only, and all must be of one time.
            self._history.answers.forget(SEEN)

    @property
    def _reads_network(self) -> bool:
        """Whether announcements are confirmed with noise on the whole network."""
        return self._settings.confirms or self._settings.noise_on == "network"

    def _watched_digests(self) -> dict[str, str]:
        """What tells watched inputs from others; those seen may change, as training goes on."""
        return {name: rows.digest for name, rows in self._rows.items() if name != SEEN}

    def replay(self, looks: Iterable[MonitorReading], answers: Mapping[int, AnswersOfSets]) -> None:
        """Judge looks that were measured before, such as those in a table, and go on from them.

        Args:
            looks: In order.
            answers: Step -> what was answered then; later looks are compared with it.
        """
        self._history.replay(looks, self._reads_network)
        for step, of_sets in answers.items():
            self._history.remember(step, of_sets)

    @property
    def answers(self) -> AnswersOfSets:
        """The answers of the last look to each set's rows; none before the first look."""
        return self._history.answers.at(self.readings[-1].step) if self.readings else {}

    def network_tolerance(self, name: str) -> Tolerance:
        """τ of a set with noise on the whole network: expensive, so only announcements read it."""
        return self._network_tolerance(name, self._noisy_network())

    def _network_tolerance(self, name: str, noisy: NoisyNetwork) -> Tolerance:
        return self._rows[name].network_tolerance(self._call, noisy, self._settings.tolerance)

    def _noisy_network(self) -> NoisyNetwork:
        return NoisyNetwork(self._call.model, self._settings.tolerance)

    def _measured(self) -> dict[str, SetMeasure]:
        tolerance = self._settings.tolerance
        if self._settings.noise_on == "network":
            return measure_network(self._rows, self._call, tolerance)
        inputs: dict[str, HeadInputs] = {}
        try:
            for name, rows in self._rows.items():
                found = rows.head_inputs(self._call)
                # One copy of the head for all sets: that of a large vocabulary takes gigabytes.
                inputs[name] = replace(found, head=inputs[SEEN].head) if inputs else found
        except NoHeadError as error:
            # What was the head is no longer the last layer, as when an adapter beside it has begun
            # to learn. That must not end anybody's training.
            return measure_without_noise(self._rows, self._call, explained(error))
        return measure(inputs, tolerance, self._draws)

    def _network_ratio(
        self, measured: Mapping[str, SetMeasure]
    ) -> Callable[[str], ToleranceRatio] | None:
        """What confirms an announcement."""
        if not self._reads_network:
            return None
        if self._settings.noise_on == "network":
            seen = measured[SEEN].tolerance
            return lambda name: tolerance_ratio(measured[name].tolerance, seen)
        # Noise is drawn and the seen set read at most once per look.
        noisy = cache(self._noisy_network)
        found = cache(lambda name: self._network_tolerance(name, noisy()))
        return lambda name: tolerance_ratio(found(name), found(SEEN))

    def _posterior_epistemic(self, name: str, posterior: Posterior) -> Mean:
        stream = EntropyStream()
        num_samples = posterior.max_samples or self._settings.tolerance.num_draws
        for logits_NC in self._rows[name].logits_under(self._call, posterior, num_samples):
            stream.add(log_probabilities(logits_NC))
        return Mean.of(stream.decomposition().epistemic)
