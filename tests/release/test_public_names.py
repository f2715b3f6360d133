"""The public names are those that `docs/public-names.txt` lists: none comes or goes unnoticed."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIST = ROOT / "docs" / "public-names.txt"
REFERENCE = ROOT / "docs" / "reference" / "python"


def source_of(module: str) -> Path:
    path = ROOT / "src" / Path(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def names_of(module: str) -> list[str]:
    """What a module lists as its names; where it lists none, its functions and classes."""
    tree = ast.parse(source_of(module).read_text())
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [str(name) for name in ast.literal_eval(node.value)]
    defined = [n.name for n in tree.body if isinstance(n, ast.ClassDef | ast.FunctionDef)]
    return [name for name in defined if not name.startswith("_")]


def documented_modules() -> list[str]:
    pages = "".join(page.read_text() for page in REFERENCE.glob("*.md"))
    return re.findall(r"automodule:: (\S+)", pages)


def test_the_list_is_what_the_code_offers_and_the_reference_documents() -> None:
    modules = ["epigrok", *documented_modules()]
    assert len(modules) > 10
    offered = sorted(f"{module}.{name}" for module in modules for name in names_of(module))
    assert offered == LIST.read_text().splitlines()


def test_names_are_found_with_a_list_and_without() -> None:
    assert "GrokMonitor" in names_of("epigrok")
    assert "draw_figure" in names_of("epigrok.figures.catalogue")
