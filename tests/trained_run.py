"""A network after a few steps of IVON, which has every kind of posterior."""

from dataclasses import dataclass

from small_tasks import TINY_IVON, family_of, one_parameter_run, train_until

from epigrok.config import RunConfig
from epigrok.evaluation import EvaluationSet, evaluation_sets, tracked_posteriors
from epigrok.model import Network
from epigrok.posteriors import Posterior
from epigrok.training import TrainState, initial_state


@dataclass(frozen=True)
class Trained:
    """A run, its state and the sequences to evaluate it on."""

    config: RunConfig
    state: TrainState
    sets: dict[str, EvaluationSet]

    @property
    def model(self) -> Network:
        """Its network."""
        return self.state.model

    def fitted(self, *names: str) -> list[Posterior]:
        """Posteriors by name."""
        carried = self.state.carried_posterior()
        return tracked_posteriors(self.config, self.model, self.sets["id_train"], carried, names)


def train() -> Trained:
    """Four steps of IVON."""
    config = one_parameter_run(optim=TINY_IVON)
    state = initial_state(config)
    train_until(state, config, 4)
    return Trained(config, state, evaluation_sets(config, family_of(config)))
