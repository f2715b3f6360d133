"""Files that others read: versions agree, workflows parse and call what there is."""

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import epigrok

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
ZOO = tomllib.loads((ROOT / "packages" / "epigrok-zoo" / "pyproject.toml").read_text())["project"]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
LOWEST = (ROOT / "constraints-lowest.txt").read_text()


def targets() -> set[str]:
    return set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def steps_of(workflow: Path) -> list[dict[str, Any]]:
    jobs = yaml.safe_load(workflow.read_text())["jobs"]
    return [step for job in jobs.values() for step in job["steps"]]


def test_one_version_everywhere() -> None:
    version = PROJECT["version"]
    assert epigrok.__version__ == version
    assert ZOO["version"] == version
    assert PROJECT["optional-dependencies"]["zoo"] == [f"{ZOO['name']}=={version}"]
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == version
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == version


def test_there_are_workflows_for_tests_docs_and_release() -> None:
    assert [workflow.stem for workflow in WORKFLOWS] == ["docs", "release", "tests"]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_calls_targets_and_files_that_exist(workflow: Path) -> None:
    commands = "\n".join(step["run"] for step in steps_of(workflow) if "run" in step)
    called = re.findall(r"^make ([\w-]+)", commands, re.MULTILINE)
    scripts = re.findall(r"bash (\S+)", commands)
    assert called
    assert set(called) <= targets()
    assert all((ROOT / script).exists() for script in scripts)
    for step in steps_of(workflow):
        assert ("run" in step) != ("uses" in step)


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/stability.md"])
def test_a_page_names_targets_that_exist(page: str) -> None:
    named = set(re.findall(r"(?:`|^    )make ([\w-]+)", (ROOT / page).read_text(), re.MULTILINE))
    assert named
    assert named <= targets()


def test_hooks_are_local_and_are_tools_that_the_project_installs() -> None:
    repositories = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    tools = {re.split(r"\W", text)[0] for text in PROJECT["optional-dependencies"]["dev"]}
    hooks = [hook for repository in repositories for hook in repository["hooks"]]
    assert {repository["repo"] for repository in repositories} == {"local"}
    assert {Path(hook["entry"].split()[0]).name for hook in hooks} == {"ruff", "mypy"} <= tools


def test_issue_templates_have_a_name_and_say_what_they_are_for() -> None:
    templates = sorted((GITHUB / "ISSUE_TEMPLATE").glob("*.md"))
    assert templates
    for template in templates:
        head = yaml.safe_load(template.read_text().split("---")[1])
        assert head["name"]
        assert head["about"]


def test_the_lowest_versions_are_those_that_are_claimed() -> None:
    extras = PROJECT["optional-dependencies"]
    claimed = dict(text.split(">=") for text in [*PROJECT["dependencies"], *extras["lab"]])
    oldest_torch = claimed.pop("torch")
    pinned = dict(re.findall(r"^([\w-]+)==(\S+)$", LOWEST, re.MULTILINE))
    assert pinned.keys() == claimed.keys()
    for name, version in claimed.items():
        assert pinned[name].startswith(version)
    assert f"LOWEST_TORCH={oldest_torch}" in (GITHUB / "workflows" / "tests.yml").read_text()


def test_independent_implementations_stay_in_the_tests() -> None:
    """One of them, `ivon`, is under the GPL."""
    foreign = {"asdfghjkl", "backpack", "curvlinops", "ivon", "laplace"}
    imported = {
        name.split(".")[0]
        for module in (ROOT / "src").rglob("*.py")
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in [getattr(node, "module", None) or node.names[0].name]
    }
    assert "torch" in imported
    assert not foreign & imported
    assert "ivon-opt" in (ROOT / "tests" / "oracles.txt").read_text()
    everything = [text for texts in PROJECT["optional-dependencies"].values() for text in texts]
    assert not any("ivon" in text for text in [*PROJECT["dependencies"], *everything])
