"""The notebooks under `examples/` run from top to bottom, on public names alone."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
PUBLIC = set((ROOT / "docs" / "public-names.txt").read_text().split())


def sources(notebook: Path) -> list[str]:
    """The code of a notebook, cell by cell."""
    cells = json.loads(notebook.read_text())["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def test_the_notebook_groks(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, source in enumerate(sources(ROOT / "examples" / "watch_it_grok.ipynb")):
        exec(compile(source, f"cell {number}", "exec"), names)
    assert names["monitor"].states == {"held out": "generalised"}
    assert names["accuracies"][-1] > 0.9 > 0.5 > names["accuracies"][0]
    assert names["uncertainties"][-1] < max(names["uncertainties"]) / 2
    assert "held out is generalised" in capsys.readouterr().out


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_has_no_outputs_and_uses_public_names(notebook: Path) -> None:
    cells = json.loads(notebook.read_text())["cells"]
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)
    used = set()
    for node in ast.walk(ast.parse("\n".join(sources(notebook)))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("epigrok"):
            used |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "epigrok":
            used.add(ast.unparse(node))
    assert used
    assert used <= PUBLIC
