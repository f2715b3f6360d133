"""The core works without the packages of any extra, and says which extra a part needs."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from epigrok.cli import help_text
from epigrok.errors import UserError
from epigrok.extras import EXTRA_OF_PACKAGE, LAB, MissingExtraError, extra_named, is_installed

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CORE = ROOT / "tests" / "use_of_the_core.py"
WITHOUT_EXTRAS = f"""
import sys
from importlib.machinery import PathFinder

others = {set(EXTRA_OF_PACKAGE)}

class WithoutOthers(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        is_there = name.partition(".")[0] not in others
        return super().find_spec(name, path, target) if is_there else None

sys.meta_path[sys.meta_path.index(PathFinder)] = WithoutOthers
"""


def packages(requirements: list[str]) -> set[str]:
    return {re.split(r"[^\w-]", text)[0] for text in requirements}


def test_the_core_is_torch_numpy_safetensors_and_little_else() -> None:
    assert packages(PROJECT["dependencies"]) == {"jaxtyping", "numpy", "safetensors", "torch"}


def test_the_extras_are_those_that_the_package_declares() -> None:
    extras = PROJECT["optional-dependencies"]
    for extra in set(EXTRA_OF_PACKAGE.values()):
        named = {package for package, of in EXTRA_OF_PACKAGE.items() if of == extra}
        assert packages(extras[extra]) - {"epigrok"} == named
    for extra in ("dev", "docs"):
        assert any(LAB in text for text in extras[extra] if text.startswith("epigrok["))


def test_the_core_works_alone() -> None:
    script = WITHOUT_EXTRAS + CORE.read_text() + "\nassert not others & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize(
    "statement",
    [
        "epigrok.train",
        "epigrok.open_sweep",
        "epigrok.draw_figure",
        "from epigrok.theory import delay",
        "from epigrok.report import write_report",
        "monitor_figure()",
    ],
)
def test_a_part_of_the_laboratory_names_its_extra(statement: str) -> None:
    script = f"""{WITHOUT_EXTRAS}
import epigrok
from epigrok.extras import MissingExtraError

def monitor_figure():
    from epigrok.monitor.drawing import draw_history
    draw_history(None, None)

try:
    {statement}
except MissingExtraError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    assert re.fullmatch(
        r"\w+ is not installed; `pip install 'epigrok\[lab\]'` adds it\n", done.stdout
    )


@pytest.mark.parametrize("extra", ["lightning", "torchmetrics", "transformers"])
def test_a_module_for_a_framework_names_its_extra(extra: str) -> None:
    script = f"""{WITHOUT_EXTRAS}
from epigrok.extras import MissingExtraError

try:
    import epigrok.integrations.{extra}
except MissingExtraError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    assert f"is not installed; `pip install 'epigrok[{extra}]'` adds it" in done.stdout


def test_commands_say_that_they_need_the_laboratory() -> None:
    script = f"{WITHOUT_EXTRAS}from epigrok.cli import main; sys.exit(main(sys.argv[1:]))"
    for arguments, exit_code in ((["presets"], 2), (["--help"], 0)):
        done = subprocess.run(
            [sys.executable, "-c", script, *arguments], check=False, capture_output=True, text=True
        )
        assert done.returncode == exit_code
        assert "`pip install 'epigrok[lab]'` adds" in done.stdout + done.stderr
        assert "Traceback" not in done.stderr


def test_with_the_laboratory_the_help_says_nothing_of_it() -> None:
    assert is_installed(LAB)
    assert "pip install" not in help_text()


def test_only_packages_of_extras_are_explained() -> None:
    with pytest.raises(ModuleNotFoundError, match="nonesuch"), extra_named():
        import nonesuch  # type: ignore[import-not-found]  # noqa: F401
    assert issubclass(MissingExtraError, UserError)
