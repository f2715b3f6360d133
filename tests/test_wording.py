"""Numbers and words as people read them."""

import errno

import pytest

from epigrok.wording import (
    NONE,
    accuracy_text,
    duration_text,
    failure_text,
    listed,
    printable,
    runs_text,
    share_text,
    step_text,
    value_text,
)


@pytest.mark.parametrize(
    ("step", "text"),
    [(12_500, "12,500"), (-2_000, "−2,000"), (99.6, "100"), (0, "0"), (None, NONE), ("x", "x")],
)
def test_steps_have_thousands_apart(step: object, text: str) -> None:
    assert step_text(step) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.000123456, "0.000123"), (-1.5, "−1.5"), (1e-17, "1e−17"), (None, NONE), ("?", "?")],
)
def test_values_have_three_digits(value: object, text: str) -> None:
    assert value_text(value) == text


def test_accuracies_have_three_decimals() -> None:
    assert [accuracy_text(value) for value in (1, 0.9984, None, "?")] == [
        "1.000",
        "0.998",
        NONE,
        "?",
    ]


def test_one_run_is_singular() -> None:
    assert [runs_text(number) for number in (0, 1, 2, 1200)] == [
        "0 runs",
        "1 run",
        "2 runs",
        "1,200 runs",
    ]
    assert share_text(3, 1000) == "3 of 1,000"


def test_lists_end_with_and() -> None:
    assert [listed(words) for words in (["a"], ["a", "b"], ["a", "b", "c"])] == [
        "a",
        "a and b",
        "a, b and c",
    ]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0:00"),
        (59.6, "1:00"),
        (65, "1:05"),
        (3599.4, "59:59"),
        (7200, "2:00:00"),
        (47 * 3600 + 61, "47:01:01"),
        (48 * 3600, "2d00h"),
        (76 * 3600 + 1800, "3d04h"),
    ],
)
def test_durations_grow_from_minutes_to_days(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


def test_control_characters_become_spaces() -> None:
    assert printable("a\x1b[31mb\nc\td é∘") == "a [31mb c d é∘"


def test_failures_of_the_system_name_their_file() -> None:
    full = errno.ENOSPC, "No space left on device"
    assert failure_text(OSError(*full, "x/y")) == "No space left on device: x/y"
    assert failure_text(OSError(*full, ".change/x", None, "x/y")) == "No space left on device: x/y"
    assert failure_text(OSError(*full)) == "No space left on device"
    assert failure_text(OSError("not written")) == "not written"
