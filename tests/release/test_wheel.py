"""The wheels as people get them: built from the repository, installed into an empty environment."""

import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from epigrok.extras import EXTRA_OF_PACKAGE

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
MAX_BYTES = 5e6
BROUGHT_BY_TORCH = {"jinja2"}


@dataclass(frozen=True)
class Environment:
    """A virtual environment, and an empty folder to call its programs in."""

    path: Path

    def pip_install(self, *arguments: object) -> None:
        pip = ["pip", "install", "--quiet", "-c", ROOT / "constraints.txt", *arguments]
        assert self.call(*pip).returncode == 0

    def call(self, program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        folder = self.path / "empty"
        folder.mkdir(exist_ok=True)
        command = [self.path / "bin" / program, *map(str, arguments)]
        # Nothing of the environment that runs the tests may leak in.
        variables = {"PATH": "/usr/bin:/bin", "HOME": str(folder)}
        kept = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        return subprocess.run(
            command, cwd=folder, env=variables | kept, capture_output=True, text=True, check=False
        )


def new_environment(path: Path) -> Environment:
    subprocess.run([sys.executable, "-m", "venv", path], check=True)
    return Environment(path)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both wheels and the source distribution."""
    folder = tmp_path_factory.mktemp("dist")
    builder = new_environment(tmp_path_factory.mktemp("builder"))
    builder.pip_install("build")
    for project, options in ((ROOT, []), (ROOT / "packages" / "epigrok-zoo", ["--wheel"])):
        done = builder.call("python", "-m", "build", *options, "--outdir", folder, project)
        assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def core(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with the core alone."""
    environment = new_environment(tmp_path_factory.mktemp("core"))
    environment.pip_install(wheel_of(built, "epigrok"))
    return environment


def wheel_of(folder: Path, name: str) -> Path:
    (wheel,) = folder.glob(f"{name}-*.whl")
    return wheel


def files_in(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def test_the_wheel_is_small_and_typed(built: Path) -> None:
    wheel = wheel_of(built, "epigrok")
    assert wheel.stat().st_size <= MAX_BYTES
    assert "epigrok/py.typed" in files_in(wheel)
    (source,) = built.glob("epigrok-*.tar.gz")
    assert source.stat().st_size <= MAX_BYTES
    with tarfile.open(source) as archive:
        names = {Path(name).name for name in archive.getnames()}
    assert names >= {"LICENSE", "CHANGELOG.md", "CITATION.cff", "pyproject.toml", "py.typed"}


def test_each_file_of_the_zoo_is_in_one_of_the_wheels(built: Path) -> None:
    def zoo_files(names: Sequence[str]) -> list[str]:
        return [name for name in names if name.startswith("epigrok/zoo/")]

    of_zoo = zoo_files(files_in(wheel_of(built, "epigrok_zoo")))
    shipped = zoo_files(files_in(wheel_of(built, "epigrok"))) + of_zoo
    source = ROOT / "src"
    there = [p for p in (source / "epigrok" / "zoo").rglob("*") if p.is_file()]
    assert sorted(shipped) == sorted(str(path.relative_to(source)) for path in there)
    assert of_zoo == [name for name in of_zoo if "icl-small" in name] != []


def test_the_core_alone_is_enough_for_the_core(core: Environment) -> None:
    done = core.call("python", "-I", ROOT / "tests" / "use_of_the_core.py")
    assert done.stdout == "the core works\n", done.stderr
    lines = core.call("pip", "list", "--format", "freeze").stdout.splitlines()
    installed = {line.partition("==")[0].lower() for line in lines}
    assert installed & set(EXTRA_OF_PACKAGE) == BROUGHT_BY_TORCH
    assert "`pip install 'epigrok[lab]'` adds" in core.call("epigrok", "--help").stdout
    refused = core.call("epigrok", "presets")
    assert refused.returncode == 2
    assert refused.stderr.endswith("is not installed; `pip install 'epigrok[lab]'` adds it\n")


def test_the_laboratory_brings_the_commands(core: Environment, built: Path) -> None:
    core.pip_install(f"{wheel_of(built, 'epigrok')}[lab]")
    few = ["--num-steps", 4, "--schedule.warmup-steps", 1, "--evaluation.num-samples", 2]
    done = core.call("epigrok", "train", "classic", *few, "--out", "run")
    assert done.returncode == 0, done.stderr
    done = core.call("epigrok", "figure", "trajectory", "run")
    assert done.returncode == 0, done.stderr
    assert "Licence" in core.call("epigrok", "zoo", "icl-small").stdout
    refused = core.call("epigrok", "status", "zoo:icl-small")
    assert refused.returncode == 2
    assert "`pip install 'epigrok[zoo]'` adds it" in refused.stderr
    core.pip_install(wheel_of(built, "epigrok_zoo"))
    done = core.call("epigrok", "check", "zoo:icl-small")
    assert done.returncode == 0, done.stdout
