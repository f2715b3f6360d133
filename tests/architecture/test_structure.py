"""The architecture the README promises: imports point down, rooms and modules stay readable."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "epigrok"
TESTS = Path(__file__).resolve().parents[1]
MODULES = sorted(SOURCE.rglob("*.py"))

LAYERS = [
    {"errors", "exit_codes", "wording", "columns"},
    {"extras"},
    {"lazy_names"},
    {"workspace", "registry"},
    {"files"},
    {"checkpoint_files"},
    {"config", "random_streams", "tensor_files"},
    {"tasks", "model", "theory", "uncertainty"},
    {"posteriors"},
    {"monitor"},
    {"training", "integrations"},
    {"evaluation"},
    {"records"},
    {"tables"},
    {"runs"},
    {"sweeps"},
    {"bench"},
    {"figures"},
    {"report"},
    {"commands"},
    {"cli"},
    {"__main__"},
]
RANK = {package: rank for rank, layer in enumerate(LAYERS) for package in layer}
ROOMS = sorted({path.parent for path in MODULES} - {SOURCE})
LINE_LIMIT = 300
ROOM_LIMIT = 18
FORBIDDEN_NAMES = {"utils", "common", "helpers", "misc"}
WITHOUT_TORCH = ("theory", "records", "tables", "figures", "report")
TESTED_ELSEWHERE = {
    # Kernels need a GPU; the theory's parts are tested by what they add up to.
    "model/fused_blocks.py": "gpu/test_fast_path.py",
    "model/kernels/answer_loss.py": "gpu/test_kernels.py",
    "model/kernels/attention.py": "gpu/test_kernels.py",
    "model/kernels/attention_backward.py": "gpu/test_kernels.py",
    "model/kernels/feedforward.py": "gpu/test_kernels.py",
    "model/kernels/norm.py": "gpu/test_kernels.py",
    "model/kernels/token_sums.py": "gpu/test_kernels.py",
    "monitor/rule.py": "monitor/test_states.py",
    "monitor/standing.py": "monitor/test_states.py",
    "training/captured.py": "gpu/test_fast_path.py",
    "theory/asymptotics.py": "theory/test_delay.py",
    "theory/excess_risk.py": "theory/test_golden.py",
    "theory/linear_model.py": "figures/test_theory.py",
    "theory/predictive.py": "theory/test_flow.py",
    "theory/summary.py": "figures/test_theory.py",
    "theory/classifier/convex.py": "theory/classifier/test_noise_tolerance.py",
    "theory/classifier/least_squares.py": "theory/classifier/test_noise_tolerance.py",
    "theory/classifier/simulation.py": "theory/classifier/test_noise_tolerance.py",
    "theory/classifier/tolerance_table.py": "figures/test_theory_tolerance.py",
    "figures/theory_delay_error.py": "figures/test_theory.py",
    "figures/context_curves.py": "figures/test_context.py",
    "commands/theory_delay.py": "commands/test_theory.py",
}


def top_package(module: Path) -> str:
    return module.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_modules(module: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} uses a relative import"
            is_whole = node.module == "epigrok"
            names |= {f"epigrok.{a.name}" for a in node.names} if is_whole else {node.module or ""}
    return names


def docstring(module: Path) -> str:
    return ast.get_docstring(ast.parse(module.read_text())) or ""


def identifier(module: Path) -> str:
    return str(module.relative_to(SOURCE))


def test_imports_point_down() -> None:
    against = [
        f"{identifier(module)} imports {name}"
        for module in MODULES
        if (own := top_package(module)) != "__init__"
        for name in imported_modules(module)
        if name.startswith("epigrok.")
        and (other := name.split(".")[1]) not in (own, "__version__")
        and RANK[other] >= RANK[own]
    ]
    assert against == []


def test_modules_can_be_read_in_one_sitting() -> None:
    long = {
        identifier(m): n for m in MODULES if (n := len(m.read_text().splitlines())) > LINE_LIMIT
    }
    assert long == {}
    assert not {module.stem for module in MODULES} & FORBIDDEN_NAMES


@pytest.mark.parametrize("room", ROOMS, ids=identifier)
def test_a_room_is_small_and_every_module_says_what_it_is(room: Path) -> None:
    assert len([path for path in room.glob("*.py") if path.stem != "__init__"]) <= ROOM_LIMIT
    assert (room / "__init__.py").exists()
    for module in room.glob("*.py"):
        assert docstring(module), f"{identifier(module)} does not say what it is"


@pytest.mark.parametrize("room", [room for room in ROOMS if room.parent == SOURCE], ids=identifier)
def test_a_room_says_what_belongs_there_and_which_other_room_has_the_rest(room: Path) -> None:
    rooms = {other.name for other in ROOMS if other.parent == SOURCE} - {room.name}
    text = docstring(room / "__init__.py")
    assert len(text.splitlines()) > 1
    assert rooms & set(re.findall("`([a-z]+)`", text)), "names no other room"


@pytest.mark.parametrize("room", WITHOUT_TORCH)
def test_reading_results_never_loads_torch(room: str) -> None:
    modules = [m for m in MODULES if m.is_relative_to(SOURCE / room)]
    names = [".".join(("epigrok", *m.relative_to(SOURCE).with_suffix("").parts)) for m in modules]
    imports = "\n".join(f"import {name.removesuffix('.__init__')}" for name in names)
    script = f"{imports}\nimport sys\nassert 'torch' not in sys.modules"
    assert len(modules) > 3
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("statement", ["import epigrok", "from epigrok.cli import help_text"])
def test_importing_the_package_and_its_help_needs_no_torch(statement: str) -> None:
    check = (
        f"{statement}\nimport sys\nassert 'torch' not in sys.modules and 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", check], check=True)


@pytest.mark.parametrize("framework", ["lightning", "transformers"])
def test_only_adapters_import_a_framework(framework: str) -> None:
    importing = [m for m in MODULES if framework in {n.split(".")[0] for n in imported_modules(m)}]
    assert SOURCE / "integrations" / f"{framework}.py" in importing
    assert {m.parent.name for m in importing} == {"integrations"}


def test_every_module_has_a_test_of_its_own_name() -> None:
    named = {str(path.relative_to(TESTS)) for path in TESTS.rglob("test_*.py")}
    without = [
        name
        for module in MODULES
        if module.stem not in ("__init__", "__main__")
        and (name := identifier(module)) not in TESTED_ELSEWHERE
        and str(Path(name).parent / f"test_{module.stem}.py") not in named
    ]
    assert without == []


def test_what_is_tested_elsewhere_is_named_there() -> None:
    for name, place in TESTED_ELSEWHERE.items():
        assert (SOURCE / name).exists()
        stem = Path(name).stem
        assert stem in (TESTS / place).read_text(), f"{place} does not name {stem}"
