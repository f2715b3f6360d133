"""How commands end."""

from epigrok import exit_codes


def test_codes_can_be_told_apart_and_only_success_is_zero() -> None:
    codes = {name: code for name, code in vars(exit_codes).items() if name.startswith("EXIT_")}
    assert len(set(codes.values())) == len(codes) == 6
    assert [name for name, code in codes.items() if code == 0] == ["EXIT_DONE"]
    # A shell keeps the low eight bits.
    assert all(0 <= code < 256 for code in codes.values())
