"""The architecture the README promises: imports point down, modules stay readable."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "epigrok"
MODULES = sorted(SOURCE.rglob("*.py"))

LAYERS = [
    {"errors", "exit_codes", "lazy_names"},
    {"files"},
    {"config", "random_streams"},
    {"tasks", "model", "theory", "uncertainty"},
    {"posteriors", "monitor"},
    {"training"},
    {"evaluation"},
    {"experiments"},
    {"figures"},
    {"report"},
    {"commands"},
    {"cli"},
    {"__main__"},
]
RANK = {package: rank for rank, layer in enumerate(LAYERS) for package in layer}
LINE_LIMIT = 300
FORBIDDEN_NAMES = {"utils", "common", "helpers", "misc"}
WITHOUT_TORCH = {"theory", "figures", "report"}


def top_package(module: Path) -> str:
    return module.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_modules(module: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} uses a relative import"
            names.add(node.module or "")
    return names


def identifier(module: Path) -> str:
    return str(module.relative_to(SOURCE))


@pytest.mark.parametrize("module", MODULES, ids=identifier)
def test_imports_point_down(module: Path) -> None:
    own = top_package(module)
    if own == "__init__":
        return
    for name in imported_modules(module):
        parts = name.split(".")
        if parts[0] == "epigrok" and len(parts) > 1 and parts[1] != own:
            assert RANK[parts[1]] < RANK[own], f"{own} imports {name}, which is not below it"


@pytest.mark.parametrize("module", MODULES, ids=identifier)
def test_modules_can_be_read_in_one_sitting(module: Path) -> None:
    assert len(module.read_text().splitlines()) <= LINE_LIMIT
    assert module.stem not in FORBIDDEN_NAMES


@pytest.mark.parametrize("module", MODULES, ids=identifier)
def test_theory_and_figures_never_import_torch(module: Path) -> None:
    if top_package(module) in WITHOUT_TORCH:
        assert not any(name.split(".")[0] == "torch" for name in imported_modules(module))


@pytest.mark.parametrize("statement", ["import epigrok", "from epigrok.cli import help_text"])
def test_importing_the_package_and_its_help_needs_no_torch(statement: str) -> None:
    check = (
        f"{statement}\nimport sys\nassert 'torch' not in sys.modules and 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", check], check=True)
