"""What the README promises exists."""

import re
from pathlib import Path

from epigrok.cli import COMMANDS

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()


def test_every_command_in_the_readme_exists() -> None:
    named = set(re.findall(r"^    epigrok (\w+)", README, flags=re.MULTILINE))
    assert named
    assert named <= COMMANDS.keys()


def test_every_link_in_the_readme_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert links
    assert all((ROOT / link).exists() for link in links)


def test_every_folder_of_the_map_exists() -> None:
    names = re.findall(r"^\| `([\w/.]+)`", README, flags=re.MULTILINE)
    assert len(names) > 8
    assert all((ROOT / "src" / "epigrok" / name).exists() for name in names)


def test_every_make_target_in_the_readme_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^    make (\S+)", README, flags=re.MULTILINE)
    assert targets
    assert all(re.search(rf"^{target}:", makefile, flags=re.MULTILINE) for target in targets)
