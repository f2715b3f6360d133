"""The grammar of posterior names."""

import pytest

from epigrok.config.posterior import PosteriorName, parse_posterior, require_distinct
from epigrok.errors import UserError


@pytest.mark.parametrize(
    ("text", "kind", "argument", "number"),
    [
        ("point", "point", "", None),
        ("laplace:evidence", "laplace", "evidence", None),
        ("weight-noise:1e-1", "weight-noise", "1e-1", 0.1),
        ("mine:a:b", "mine", "a:b", None),
    ],
)
def test_a_name_is_a_kind_and_an_argument(
    text: str, kind: str, argument: str, number: float | None
) -> None:
    name = parse_posterior(text)
    assert name == PosteriorName(text, kind, argument)
    assert name.number == number


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("point:", "no value after the colon"),
        (":3", "has no name"),
        ("", "has no name"),
        ("a\nb", "unprintable"),
    ],
)
def test_what_is_no_name_is_refused(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse_posterior(text)


def test_a_posterior_listed_twice_is_refused_in_any_spelling() -> None:
    require_distinct(["point", "laplace", "laplace:1", "laplace:evidence", "weight-noise:1"])
    with pytest.raises(UserError, match="listed twice in point, point"):
        require_distinct(["point", "point"])
    with pytest.raises(UserError, match="twice"):
        require_distinct(["weight-noise:0.1", "weight-noise:1e-1"])
