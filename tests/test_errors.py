"""The mistake of a user."""

import pytest

from epigrok.config import preset
from epigrok.errors import UserError


def test_a_mistake_can_be_caught_as_a_value_error_and_is_its_sentence() -> None:
    with pytest.raises(ValueError, match="no preset named 'x'") as caught:
        preset("x")
    assert type(caught.value) is UserError
    assert "\n" not in str(caught.value)
