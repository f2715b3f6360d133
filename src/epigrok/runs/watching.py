"""The monitor of a run: it looks at every split whenever the run is evaluated.

Letters: B sequences, L tokens, C classes.
"""

import warnings
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import linear

from epigrok.config import RunConfig
from epigrok.errors import UserError
from epigrok.evaluation import EvaluationSet, evaluation_precision, evaluation_sets
from epigrok.evaluation.schema import TOLERANCE_NAMES
from epigrok.model import Network, build_model
from epigrok.monitor import (
    SEEN,
    Event,
    GrokMonitor,
    MonitorReading,
    MonitorSettings,
    SetReading,
)
from epigrok.posteriors import evaluating
from epigrok.runs.device import DeviceName, choose_device
from epigrok.runs.run import Run

Row = dict[str, Any]
_SETTINGS = MonitorSettings(answered="last", num_rows=128)
"""Half the usual rows: looks are many, and a run should not pay more than it must."""


class RunMonitor:
    """Looks at the last answers of every split; the training split is what the model has seen."""

    def __init__(
        self,
        config: RunConfig,
        model: Network,
        sets: Mapping[str, EvaluationSet],
    ) -> None:
        self._config, self._model = config, model
        self._training, *others = (split.name for split in config.task.splits)
        self._seen = sets[self._training].batch
        self._monitor: GrokMonitor | None = None
        try:
            watched = {name: sets[name].batch.tokens_BL for name in others}
            self._monitor = GrokMonitor(
                model, self._seen.tokens_BL, watched, forward=_last_logits, settings=_SETTINGS
            )
        except UserError as error:
            # The splits of a plugin's task may not be comparable; the run trains all the same.
            warnings.warn(f"tolerance is not tracked: {error}", stacklevel=2)

    @property
    def events(self) -> list[Event]:
        """Every change of a state so far."""
        return [] if self._monitor is None else self._monitor.events

    def look(self, step: int, train_accuracy: float | None = None) -> list[Row]:
        """The rows of one look, for the table `tolerance`.

        Args:
            step: Updates taken so far.
            train_accuracy: Of the training split's last answers, if an evaluation has found it.
        """
        if self._monitor is None:
            return []
        with evaluation_precision(self._config, self._seen.tokens_BL.device):
            if train_accuracy is None:
                train_accuracy = self._train_accuracy()
            reading = self._monitor.update(step, train_accuracy=train_accuracy)
        return list(_rows(reading, self._training, self._monitor.answers))

    def go_on(self, rows: Iterable[Row]) -> None:
        """Continue from the looks that an earlier process wrote into the table."""
        if self._monitor is not None:
            rows = list(rows)
            try:
                looks = _readings(rows, self._training)
                self._monitor.replay(looks, _answers(rows, self._training))
            except (KeyError, TypeError, ValueError) as error:
                raise UserError(
                    f"the table tolerance is damaged ({error!r}); look at the run with `epigrok "
                    "check`, or train it again from step 0 with --start-over"
                ) from error

    def _train_accuracy(self) -> float:
        # No more sequences than the monitor takes of each split, so that a look stays cheap.
        number = _SETTINGS.num_rows
        with evaluating(self._model):
            logits_BC = _last_logits(self._model, self._seen.tokens_BL[:number])[:, 0]
        is_right_B = logits_BC.argmax(dim=-1) == self._seen.answers_BT[:number, -1]
        return float(is_right_B.double().mean())


def _last_logits(model: Network, tokens_BL: Int[Tensor, "B L"]) -> Float[Tensor, "B 1 C"]:
    """The logits of each sequence's last answer, the only one that is read."""
    return linear(model.last_features(tokens_BL), model.head_weight)


def _rows(
    reading: MonitorReading, training: str, answers: Mapping[str, tuple[int, ...]]
) -> Iterator[Row]:
    for row in reading.rows():
        row["answers"] = " ".join(map(str, answers[row["set"]]))
        split = training if row["set"] == SEEN else row["set"]
        known = {name: row[name] for name in TOLERANCE_NAMES if _is_known(row[name])}
        yield {"step": reading.step, "split": split, **known}


def _answers(rows: Iterable[Row], training: str) -> dict[int, dict[str, tuple[int, ...]]]:
    """Step and set -> answers."""
    found: dict[int, dict[str, tuple[int, ...]]] = {}
    for row in rows:
        name = SEEN if row["split"] == training else row["split"]
        found.setdefault(row["step"], {})[name] = tuple(map(int, row.get("answers", "").split()))
    return found


def _is_known(value: Any) -> bool:
    return value is not None and (isinstance(value, str) or isfinite(value))


def _readings(rows: Iterable[Row], training: str) -> list[MonitorReading]:
    looks: dict[int, dict[str, Row]] = {}
    for row in rows:
        looks.setdefault(row["step"], {})[SEEN if row["split"] == training else row["split"]] = row
    columns = SetReading.__dataclass_fields__
    return [
        MonitorReading(
            step=step,
            sets={
                name: SetReading(**{c: v for c, v in row.items() if c in columns})
                for name, row in sets.items()
            },
            train_accuracy=sets[SEEN].get("train_accuracy"),
        )
        for step, sets in looks.items()
    ]


def looks_at_checkpoints(run: Run, device_name: DeviceName = "auto") -> Iterator[list[Row]]:
    """The rows of a look at each kept checkpoint in order, the training split first."""
    device = choose_device(device_name)
    config, model = run.config, run.model(device=device)
    # It looks at the untrained network first, as that of the run did.
    model.load_state_dict(build_model(config).state_dict())
    monitor = RunMonitor(config, model, evaluation_sets(config, run.family(device)))
    for step in run.checkpoints:
        model.load_state_dict(run.model(step, device).state_dict())
        rows = monitor.look(step)
        if rows:
            yield rows
