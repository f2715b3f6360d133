"""`epigrok presets`."""

import pytest

from epigrok.cli import main
from epigrok.config import presets


def test_presets_lists_each_on_a_line_with_its_name_apart(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["presets"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines] == presets()
    assert len({len(line) - len(line.split("  ", 1)[1].lstrip()) for line in lines}) == 1
