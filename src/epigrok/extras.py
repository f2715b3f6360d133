"""Packages that only some parts need: which extra brings each, and the sentence that says so.

The core (posteriors, `predict`, `decompose`, the monitor) needs none of them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from epigrok.errors import UserError

LAB = "lab"
"""Runs, sweeps, figures, the report, the theory and the command line."""
EXTRA_OF_PACKAGE = {
    "duckdb": LAB,
    "jinja2": LAB,
    "matplotlib": LAB,
    "rich": LAB,
    "scipy": LAB,
    "tyro": LAB,
    "accelerate": "transformers",
    "lightning": "lightning",
    "ray": "ray",
    "submitit": "slurm",
    "tensorboard": "tensorboard",
    "torchmetrics": "torchmetrics",
    "transformers": "transformers",
}


class MissingExtraError(UserError, ImportError):
    """A package that an extra brings is not installed."""


@contextmanager
def extra_named() -> Iterator[None]:
    """Within the block, importing a package that is not installed says which extra brings it."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRA_OF_PACKAGE:
            raise
        command = install_command(EXTRA_OF_PACKAGE[package])
        raise MissingExtraError(f"{package} is not installed; {command} adds it") from error


def is_installed(extra: str) -> bool:
    """Whether all packages of an extra are there."""
    packages = [package for package, of in EXTRA_OF_PACKAGE.items() if of == extra]
    return all(find_spec(package) is not None for package in packages)


def require_installed(extra: str) -> None:
    """Say how to install an extra that is missing, before any work is done."""
    if not is_installed(extra):
        command = install_command(extra)
        raise MissingExtraError(f"{extra} needs more packages; {command} adds them")


def install_command(extra: str) -> str:
    """The command that installs an extra, as code."""
    return f"`pip install 'epigrok[{extra}]'`"
