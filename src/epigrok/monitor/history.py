"""All looks so far: the state of every watched set, its events and the table of readings."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, replace
from math import hypot, isfinite, nan
from operator import index
from typing import Any, SupportsIndex

from epigrok.errors import UserError
from epigrok.monitor.fit import SignsOfFit
from epigrok.monitor.measuring import SEEN, SetMeasure
from epigrok.monitor.past_answers import AnswersOfSets, PastAnswers, agreement
from epigrok.monitor.readings import COLUMNS, Event, MonitorReading, SetReading, set_reading
from epigrok.monitor.rule import StateRule
from epigrok.monitor.standing import Reading, Standing
from epigrok.monitor.states import follow
from epigrok.monitor.tolerance import ToleranceRatio, tolerance_ratio

_FORMAT = 7
"""Of what `to_json` writes."""
_SIGNS = ("train_accuracy", "train_loss")


class History:
    """The looks at some watched sets, in order."""

    def __init__(self, watched: tuple[str, ...], rule: StateRule) -> None:
        self._rule = rule
        self.standings = {name: Standing() for name in watched}
        self.readings: list[MonitorReading] = []
        self.events: list[Event] = []
        self.answers = PastAnswers(rule)

    def require_later(self, step: SupportsIndex) -> int:
        """The step, unless it was looked at already, lies before the last look, or is no step."""
        try:
            whole = index(step)
        except TypeError:
            whole = -1
        if whole < 0:
            raise UserError(f"step must be a whole number from 0 on, got {step!r}")
        step = whole
        if self.readings and step <= self.readings[-1].step:
            raise UserError(
                f"step {step} does not come after step {self.readings[-1].step}, which was looked "
                "at before; after going back, load what was saved at that point"
            )
        return step

    def add(
        self,
        step: SupportsIndex,
        measured: Mapping[str, SetMeasure],
        fit: SignsOfFit,
        network_ratio: Callable[[str], ToleranceRatio] | None = None,
    ) -> MonitorReading:
        """Judge one look.

        Args:
            step: Updates taken so far.
            measured: The seen set and all watched ones.
            fit: What says that the training set is fitted.
            network_ratio: Reads a watched set again with noise on the whole network, which the
                rule asks for where an announcement depends on it.
        """
        step = self.require_later(step)
        seen = measured[SEEN]
        standings, events = dict(self.standings), []
        answers = {name: found.answers for name, found in measured.items()}
        earlier = self.answers.earlier(step)
        seen_steadiness = agreement(earlier.get(SEEN, ()), seen.answers)
        sets = {SEEN: set_reading(seen, steadiness=seen_steadiness)}
        settled_ahead = self.answers.settled_ahead(answers)
        for name, before in self.standings.items():
            ratio = tolerance_ratio(measured[name].tolerance, seen.tolerance)
            found = set_reading(
                measured[name],
                ratio,
                steadiness=agreement(earlier.get(name, ()), answers[name]),
                kept=agreement(self.answers.at(before.sure_step).get(name, ()), answers[name]),
                settled_ahead=settled_ahead[name].value,
                settled_ahead_se=settled_ahead[name].standard_error,
            )
            reading = _reading(step, found, sets[SEEN], fit, ratio.reason)
            confirm = _Once(network_ratio, name) if network_ratio is not None else None
            standings[name] = follow(before, reading, self._rule, confirm)
            sets[name] = _judged(found, standings[name])
            if confirm is not None and (of_network := confirm.found) is not None:
                sets[name] = replace(
                    sets[name],
                    network_ratio=of_network.value,
                    network_ratio_log_se=of_network.log_standard_error,
                )
            if standings[name].state != before.state:
                events.append(Event(name, standings[name].state, step))
        look = MonitorReading(step=step, sets=sets, **asdict(fit))
        # All at once, so that an exception above leaves everything as it was.
        self.standings, self.events = standings, [*self.events, *events]
        self.remember(step, answers)
        self.readings.append(look)
        return look

    def remember(self, step: int, answers: AnswersOfSets) -> None:
        """Keep a look's answers for later ones."""
        sure_steps = [standing.sure_step for standing in self.standings.values()]
        self.answers.remember(step, answers, sure_steps)

    def replay(self, looks: Iterable[MonitorReading], confirms: bool = True) -> None:
        """Judge looks that were measured before as if they were made now.

        Args:
            looks: In order.
            confirms: Whether announcements need the whole network.
        """
        for look in looks:
            sets = dict(look.sets)
            fit = SignsOfFit(train_accuracy=look.train_accuracy, train_loss=look.train_loss)
            for name, before in self.standings.items():
                found = look[name]
                is_known = isfinite(found.tolerance_ratio)
                reason = None if is_known else found.unreadable or "not known any more"
                reading = _reading(look.step, found, look[SEEN], fit, reason)
                confirm = _recorded(found) if confirms else None
                standing = follow(before, reading, self._rule, confirm)
                if standing.state != before.state:
                    self.events.append(Event(name, standing.state, look.step))
                self.standings[name] = standing
                sets[name] = _judged(found, standing)
            self.readings.append(replace(look, sets=sets))

    def record_seconds(self, seconds: float) -> MonitorReading:
        """The last look, with the time that it took."""
        self.readings[-1] = replace(self.readings[-1], seconds=seconds)
        return self.readings[-1]

    def table(self) -> dict[str, list[Any]]:
        """Columns of all looks, one row per look and set: for pandas, polars or DuckDB."""
        rows = [row for reading in self.readings for row in reading.rows()]
        names = ("step", "set", *COLUMNS, *_SIGNS, "seconds")
        return {name: [row[name] for row in rows] for name in names}

    def to_json(self) -> dict[str, Any]:
        """Everything, as a JSON document; what is not a number is null."""
        return {
            "format": _FORMAT,
            "watched": list(self.standings),
            "standings": {name: asdict(standing) for name, standing in self.standings.items()},
            "events": [list(event) for event in self.events],
            "answers": [
                [step, {name: list(found) for name, found in answers.items()}]
                for step, answers in self.answers.of_steps.items()
            ],
            "table": {
                name: [_written(value, name in _SIGNS) for value in column]
                for name, column in self.table().items()
            },
        }

    def require_saved(self, values: Any, inputs: Mapping[str, str]) -> None:
        """Refuse what `to_json` did not write of these sets.

        Args:
            values: That, and under "inputs" the digests of the watched sets.
            inputs: The digests that these must have.
        """
        if not isinstance(values, Mapping) or values.get("format") != _FORMAT:
            raise UserError("this is not a saved monitor, or one of another version of epigrok")
        if (watched := values.get("watched")) != list(self.standings):
            raise UserError(
                f"the saved monitor watched {watched}, this one watches "
                f"{list(self.standings)}; watch the same sets in the same order"
            )
        others = [n for n, own in inputs.items() if (values.get("inputs") or {}).get(n) != own]
        if others:
            raise UserError(
                f"the saved monitor watched other inputs of {', '.join(others)}: answers can only "
                "be compared with earlier ones to the same inputs"
            )

    def restore(self, values: Any) -> None:
        """Go on from what `to_json` wrote."""
        try:
            standings = {n: Standing(**values["standings"][n]) for n in self.standings}
            events = [Event(*event) for event in values["events"]]
            readings = readings_in(values["table"])
            answers: dict[int, AnswersOfSets] = {
                step: {name: tuple(found) for name, found in of_sets.items()}
                for step, of_sets in values["answers"]
            }
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise UserError(f"the saved monitor is damaged: {error!r}") from error
        if answers and not readings:
            raise UserError("the saved monitor is damaged: it has answers, but no looks")
        self.standings, self.events, self.readings = standings, events, readings
        self.answers.of_steps = answers


def _reading(
    step: int, found: SetReading, seen: SetReading, fit: SignsOfFit, reason: str | None
) -> Reading:
    """What the rule reads of a set; `reason` says why its ratio cannot be read."""
    return Reading(
        step=step,
        ratio=found.tolerance_ratio,
        chance=seen.chance,
        steadiness=found.steadiness,
        log_standard_error=found.tolerance_ratio_log_se,
        reason=reason,
        kept=found.kept,
        predictability=found.predictability,
        seen_predictability=found.seen_predictability,
        predictability_error=hypot(found.predictability_se, found.seen_predictability_se),
        seen_confidence=seen.confidence,
        seen_steadiness=seen.steadiness,
        settled_ahead=found.settled_ahead,
        settled_ahead_error=found.settled_ahead_se,
        **asdict(fit),
    )


def _judged(found: SetReading, standing: Standing) -> SetReading:
    return replace(found, state=standing.state, unreadable=standing.unreadable)


class _Once:
    """Reads a set with noise on the whole network, and remembers what it found."""

    def __init__(self, read: Callable[[str], ToleranceRatio], name: str) -> None:
        self._read, self._name = read, name
        self.found: ToleranceRatio | None = None

    def __call__(self) -> ToleranceRatio:
        if self.found is None:
            self.found = self._read(self._name)
        return self.found


def _recorded(found: SetReading) -> Callable[[], ToleranceRatio]:
    """What noise on the whole network showed at a look made before."""
    is_known = isfinite(found.network_ratio)
    ratio = ToleranceRatio(
        value=found.network_ratio,
        log_standard_error=found.network_ratio_log_se,
        reason=None if is_known else found.unreadable or "the whole network was not read",
    )
    return lambda: ratio


def _written(value: Any, keeps_nan: bool) -> Any:
    if not isinstance(value, float) or isfinite(value):
        return value
    # A sign of fit that is no number was passed; null says that none was.
    return str(value) if keeps_nan else None


def readings_in(table: Mapping[str, list[Any]]) -> list[MonitorReading]:
    """The looks in a table's columns; a number that is null is not known."""
    rows = [dict(zip(table, values)) for values in zip(*table.values(), strict=True)]
    looks: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        looks.setdefault(row["step"], []).append(row)
    texts = ("state", "unreadable")

    def reading(row: dict[str, Any]) -> SetReading:
        numbers: dict[str, Any] = {
            n: nan if row[n] is None and n not in texts else row[n] for n in COLUMNS
        }
        return SetReading(**numbers)

    return [
        MonitorReading(
            step=step,
            sets={row["set"]: reading(row) for row in of_step},
            **{
                name: None if of_step[0][name] is None else float(of_step[0][name])
                for name in _SIGNS
            },
            seconds=of_step[0]["seconds"],
        )
        for step, of_step in looks.items()
    ]
