"""Public names that are loaded on first use."""

from importlib import import_module

import pytest

from epigrok.errors import UserError
from epigrok.lazy_names import loader


def test_a_name_comes_from_its_home_and_others_do_not_exist() -> None:
    load = loader("epigrok", {"UserError": "errors"})
    assert load("UserError") is UserError
    with pytest.raises(AttributeError, match="module 'epigrok' has no attribute 'Mistake'"):
        load("Mistake")


@pytest.mark.parametrize(
    "package", ["epigrok", "epigrok.evaluation", "epigrok.runs", "epigrok.tables"]
)
def test_every_public_name_can_be_loaded(package: str) -> None:
    module = import_module(package)
    assert module.__all__
    for name in module.__all__:
        assert getattr(module, name) is not None
