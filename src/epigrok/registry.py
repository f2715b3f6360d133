"""Registries of everything that can be plugged in: tasks, models, posteriors, figures, presets.

A registry finds entries by name. The built-in entries of a kind live in one package, whose modules
register them on import; the registry imports these modules when it needs them. Your own entries
register when you import their module, or with `load_plugin`.
"""

import hashlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, Generic, TypeVar

from epigrok.errors import UserError

Entry = TypeVar("Entry")
_LOADED: dict[str, Path] = {}
"""Loaded plugin files, by the name of their module."""


class Registry(Generic[Entry]):
    """Entries of one kind by name.

    Args:
        what: What an entry is called in messages: "posterior".
        home: The package whose modules register the built-in entries.
    """

    def __init__(self, what: str, home: str) -> None:
        self._what, self._home = what, home
        self._entries: dict[str, Entry] = {}

    def add(self, name: str, entry: Entry) -> None:
        """Register `entry`; a file loaded again replaces its own entries."""
        known = self._entries.get(name)
        if known is not None and _origin(known) != _origin(entry):
            raise UserError(
                f"a {self._what} named {name!r} is registered already, by {_origin(known)[0]}; "
                "choose another name"
            )
        self._entries[name] = entry

    def find(self, name: str) -> Entry:
        """The entry called `name`; the error for an unknown name lists those that exist."""
        if name not in self._entries:
            import_all_modules(self._home)
        if name not in self._entries:
            known = ", ".join(self._entries)
            raise UserError(f"no {self._what} named {name!r}; there are: {known}")
        return self._entries[name]

    def entries(self) -> dict[str, Entry]:
        """All entries, the built-in ones included."""
        import_all_modules(self._home)
        return dict(self._entries)


@dataclass(frozen=True)
class Plugin:
    """A file outside the package that registered something."""

    file: str
    """Its file name, without folders."""
    digest: str


@cache
def import_all_modules(package: str) -> None:
    """Import every module of a package, so that each registers its entries."""
    found = import_module(package)
    for module in iter_modules(found.__path__):
        try:
            import_module(f"{package}.{module.name}")
        except ModuleNotFoundError as error:
            # Kernels need Triton, which only GPU machines have. They register nothing.
            if error.name != "triton":
                raise


def load_plugin(path: Path | str) -> None:
    """Import a Python file, which registers its tasks, models, posteriors, figures or presets."""
    path = Path(path).resolve()
    if not path.is_file():
        raise UserError(f"there is no plugin file {path}")
    specification = spec_from_file_location(path.stem, path)
    if specification is None or specification.loader is None:
        raise UserError(f"a plugin must be a Python file, got {path}")
    loaded = sys.modules.get(path.stem)
    if loaded is not None:
        if getattr(loaded, "__file__", None) == str(path):
            _LOADED[path.stem] = path
            return
        raise UserError(f"a module named {path.stem!r} is already loaded; rename {path}")
    module = module_from_spec(specification)
    # Listed before it runs, because dataclasses look up their own module.
    sys.modules[path.stem] = module
    try:
        specification.loader.exec_module(module)
        _LOADED[path.stem] = path
    except Exception as error:
        del sys.modules[path.stem]
        if isinstance(error, UserError):
            raise
        raise UserError(
            f"cannot load the plugin {path}: {type(error).__name__}: {error}"
        ) from error


def loaded_plugins() -> list[Path]:
    """The loaded plugin files, for worker processes that must load them too."""
    return list(_LOADED.values())


def plugin_of(entry: Callable[..., Any] | type) -> Plugin | None:
    """The file outside the package that defines `entry`; None for built-in entries."""
    if entry.__module__.partition(".")[0] == "epigrok":
        return None
    file = getattr(sys.modules.get(entry.__module__), "__file__", None)
    if file is None:
        return Plugin("an interactive session", "")
    digest = hashlib.blake2b(Path(file).read_bytes(), digest_size=16).hexdigest()
    return Plugin(Path(file).name, digest)


def _origin(entry: Any) -> tuple[str, str]:
    """Module and name of the registered object."""
    made = entry if hasattr(entry, "__qualname__") else getattr(entry, "build", type(entry))
    return made.__module__, made.__qualname__
