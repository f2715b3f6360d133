"""Checks that sections share."""

import pytest

from epigrok.config.checks import (
    require,
    require_fraction,
    require_memory,
    require_non_negative,
    require_positive,
    require_prime,
)
from epigrok.errors import UserError


def test_primes_are_told_from_other_numbers() -> None:
    primes = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29)
    for number in [*range(-3, 30), 31 * 31]:
        if number in primes:
            require_prime(number)
        else:
            with pytest.raises(UserError, match=f"prime, got {number}"):
                require_prime(number)


def test_each_check_passes_what_it_should_and_names_what_it_refuses() -> None:
    require(True, "never shown")
    require_fraction("share", 0.5)
    require_positive(a=1, b=0.1)
    require_non_negative(a=0, b=0.0)
    with pytest.raises(UserError, match=r"^as it is$"):
        require(False, "as it is")
    for value in (0.0, 1.0, -0.5, float("nan")):
        with pytest.raises(UserError, match=f"share .* got {value}"):
            require_fraction("share", value)
    for check, value in ((require_positive, 0), (require_non_negative, -1)):
        with pytest.raises(UserError, match=f"b must .* got {value}"):
            check(a=1, b=value)


@pytest.mark.parametrize("modulus", [10**18 + 9, 10**400])
def test_a_modulus_that_nobody_has_memory_for_is_refused_at_once(modulus: int) -> None:
    with pytest.raises(UserError, match="the modulus must be at most 100003"):
        require_prime(modulus)


def test_sizes_are_refused_with_the_number() -> None:
    require_memory("a batch", 2.0**40)
    with pytest.raises(UserError, match=r"a batch would take 16 TiB of memory, more than 2 TiB"):
        require_memory("a batch", 2.0**44)
