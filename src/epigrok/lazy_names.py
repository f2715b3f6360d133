"""Load the public names of a package on first use, so that importing it stays instant."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from epigrok.extras import extra_named


def loader(package: str, home_of_name: Mapping[str, str]) -> Callable[[str], Any]:
    """A `__getattr__` for `package` that takes each name from its home, a module of the package."""

    def load(name: str) -> Any:
        if name not in home_of_name:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with extra_named():
            return getattr(import_module(f"{package}.{home_of_name[name]}"), name)

    return load
