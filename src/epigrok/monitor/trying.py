"""The first call of the model, so that a mistake shows before training starts."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from epigrok.errors import UserError
from epigrok.monitor.sets.set_rows import ModelCall, SetRows
from epigrok.posteriors.head import HeadInputs, NoHeadError


def require_model(model: object) -> nn.Module:
    """Refuse what is no network, or one that no noise can be put on yet."""
    if not isinstance(model, nn.Module):
        raise UserError(f"model must be a torch.nn.Module, got {type(model).__name__}")
    if next(model.parameters(), None) is None:
        raise UserError("the model has no parameters, so no noise can be put on them")
    if lazy := [name for name, weights in model.named_parameters() if is_lazy(weights)]:
        raise UserError(
            f"the model's first call will make its parameter {lazy[0]!r}, and that call belongs to "
            "training; call the model on a batch before you make the monitor"
        )
    return model


@torch.no_grad()
def tried(name: str, rows: SetRows, call: ModelCall, has_head: bool) -> HeadInputs | None:
    """What the head gets of a set, if there is to be a head."""
    with _explaining(name, rows):
        if has_head:
            return rows.head_inputs(call)
        rows.own_logits(call)
        return None


@contextmanager
def _explaining(name: str, rows: SetRows) -> Iterator[None]:
    """Say in one sentence why the model cannot be called on a set."""
    try:
        yield
    except NoHeadError as error:
        raise UserError(explained(error)) from error
    except UserError:
        raise
    except torch.OutOfMemoryError as error:
        raise UserError(
            f"{rows.num_inputs} inputs of {name} at once do not fit into memory; pass a list "
            "of smaller batches"
        ) from error
    except (TypeError, ValueError, RuntimeError, IndexError, KeyError, AttributeError) as error:
        first_line = str(error).strip().splitlines()[0]
        raise UserError(
            f"the model cannot be called on {name} ({rows.described}): {first_line}; pass "
            "inputs as the model takes them, without labels, or a forward= that calls it"
        ) from error


def explained(error: NoHeadError) -> str:
    """Why there is no head to put noise on, and what to do in a monitor."""
    return (
        f"{error} (in a monitor settings=MonitorSettings(head=…)); or put the noise on the whole "
        'network, with settings=MonitorSettings(noise_on="network")'
    )
