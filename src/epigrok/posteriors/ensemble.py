"""Several independently trained networks as equally likely samples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from epigrok.errors import UserError
from epigrok.posteriors.gaussian import frozen_tensors
from epigrok.posteriors.protocol import save_posterior


@dataclass(frozen=True)
class Ensemble:
    """A uniform distribution over its members' weights."""

    members: tuple[Mapping[str, Tensor], ...]
    """Parameters and buffers of each."""
    name: str = "ensemble"
    save = save_posterior

    @classmethod
    def of(cls, models: Sequence[nn.Module]) -> "Ensemble":
        """The ensemble of `models`, which must share one architecture."""
        members = tuple(frozen_tensors(model) for model in models)
        shapes = [{name: tuple(w.shape) for name, w in member.items()} for member in members]
        if not members or any(shape != shapes[0] for shape in shapes):
            raise UserError("an ensemble needs at least one model, all of the same architecture")
        return cls(members)

    @property
    def max_samples(self) -> int | None:
        """One sample per member."""
        return len(self.members)

    def sample(self, index: int) -> Mapping[str, Tensor]:
        """The weights of member `index`."""
        return self.members[index]

    def __repr__(self) -> str:
        return f"Ensemble({len(self.members)} members of {len(self.members[0])} tensors)"
