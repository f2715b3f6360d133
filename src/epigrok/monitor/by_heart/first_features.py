"""What the head got of each row when the monitor was made, best before training.

Raw inputs do not say which of them a network takes for alike; its own features do. Later ones would
say little: while labels are learnt by heart, rows with equal labels become alike.

Letters: N rows of a set, D features.
"""

from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from epigrok.errors import UserError
from epigrok.monitor.measuring import SEEN
from epigrok.monitor.sets.inputs import evenly_spaced
from epigrok.posteriors.head import HeadInputs

_MOST_FEATURES = 1024
"""Of more, so many are taken, evenly spread: distances hardly change."""
_STORED = np.dtype("<f2")
"""Half precision, rounded at once: what goes on from a file computes with the same numbers."""

FirstFeatures = Mapping[str, Float[Tensor, "N D"]]
"""Set -> features in units of their spread over the seen rows."""


def first_features(inputs: Mapping[str, HeadInputs]) -> FirstFeatures:
    """Of all sets, from what their head gets now."""
    seen_ND = inputs[SEEN].features_ND.double()
    mean_D, spread_D = seen_ND.mean(dim=0), seen_ND.std(dim=0, correction=0)
    # Rounding gives a constant feature some spread, too.
    varies_D = spread_D > 1e-6 * seen_ND.abs().amax(dim=0)
    kept = varies_D.nonzero().flatten()
    kept = kept[evenly_spaced(len(kept), _MOST_FEATURES).to(kept.device)]

    def scaled(features_ND: Tensor) -> Tensor:
        units_ND = (features_ND.double()[:, kept] - mean_D[kept]) / spread_D[kept]
        return units_ND.nan_to_num().clamp(-1e4, 1e4).half().double().cpu()

    return {name: scaled(of_set.features_ND) for name, of_set in inputs.items()}


def features_to_json(features: FirstFeatures) -> dict[str, Any]:
    """As texts and numbers."""

    def text(features_ND: Tensor) -> str:
        return b64encode(features_ND.numpy().astype(_STORED).tobytes()).decode()

    return {name: [*of_set.shape, text(of_set)] for name, of_set in features.items()}


def features_from_json(values: Any) -> FirstFeatures:
    """What `features_to_json` wrote."""
    try:
        return {name: _read(*of_set) for name, of_set in values.items()}
    except (AttributeError, TypeError, ValueError) as error:
        raise UserError(f"the saved monitor is damaged: {error!r}") from error


def _read(num_rows: int, num_features: int, text: str) -> Float[Tensor, "N D"]:
    numbers = np.frombuffer(b64decode(text, validate=True), _STORED)
    return torch.from_numpy(numbers.reshape(num_rows, num_features).astype(np.float64))
