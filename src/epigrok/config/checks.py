"""Checks that the sections of a configuration share; each error names the offending value."""

from epigrok.errors import UserError

LARGEST_MODULUS = 100_003
MOST_BYTES = 2.0**41
"""Two TiB: more than that is a typing mistake."""


def require(condition: bool, message: str) -> None:
    """Raise a `UserError` with `message` unless `condition` holds."""
    if not condition:
        raise UserError(message)


def require_prime(modulus: int) -> None:
    """Refuse a modulus that is not prime: arithmetic mod p needs inverses."""
    # A larger one would take long to check, and its table would fit no memory.
    require(
        modulus <= LARGEST_MODULUS,
        f"the modulus must be at most {LARGEST_MODULUS}, {_short(modulus)} is not",
    )
    is_prime = modulus >= 2 and all(modulus % k for k in range(2, int(modulus**0.5) + 1))
    require(is_prime, f"the modulus must be prime, got {modulus}")


def require_fraction(name: str, value: float) -> None:
    """Refuse a fraction outside the open interval (0, 1)."""
    require(0.0 < value < 1.0, f"{name} must lie strictly between 0 and 1, got {value}")


def require_positive(**values: float) -> None:
    """Refuse any named value that is not above zero."""
    for name, value in values.items():
        require(value > 0, f"{name} must be positive, got {value}")


def require_non_negative(**values: float) -> None:
    """Refuse any named value below zero."""
    for name, value in values.items():
        require(value >= 0, f"{name} must not be negative, got {value}")


def require_memory(what: str, num_bytes: float) -> None:
    """Refuse sizes that no machine has the memory for, with the number."""
    require(
        num_bytes <= MOST_BYTES,
        f"{what} would take {num_bytes / 2**40:,.3g} TiB of memory, more than "
        f"{MOST_BYTES / 2**40:g} TiB",
    )


def _short(number: int) -> str:
    """A whole number, or its size if it is long."""
    return str(number) if abs(number) < 10**24 else f"a number of {number.bit_length()} bits"
