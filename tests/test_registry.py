"""Entries by name, found in their home, in a plugin or not at all."""

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

import epigrok.registry
from epigrok.config import OneParameterTask
from epigrok.errors import UserError

HOME = "little_home"


@pytest.fixture
def registry() -> Iterator[ModuleType]:
    """The module as it starts: nobody's plugins are loaded, and ours are forgotten afterwards."""
    before = set(sys.modules)
    specification = spec_from_file_location("fresh_registry", epigrok.registry.__file__)
    assert specification is not None
    assert specification.loader is not None
    module = module_from_spec(specification)
    sys.modules["fresh_registry"] = module
    specification.loader.exec_module(module)
    yield module
    for name in set(sys.modules) - before:
        if name.startswith(("fresh_", "little_")):
            del sys.modules[name]


@pytest.fixture
def home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, registry: ModuleType
) -> Callable[[str], None]:
    """Adds modules to an empty package that a registry can have for its home."""
    monkeypatch.syspath_prepend(tmp_path)
    package = tmp_path / HOME
    package.mkdir()
    (package / "__init__.py").write_text(
        "from fresh_registry import Registry\nTHINGS = Registry('thing', home='little_home')\n"
    )

    def add(name: str, text: str = "") -> None:
        register = f"from little_home import THINGS\ndef {name}(): ...\n"
        (package / f"{name}.py").write_text(text or f"{register}THINGS.add('{name}', {name})\n")

    return add


def test_entries_at_home_are_imported_when_a_name_is_first_looked_up(
    home: Callable[[str], None],
) -> None:
    home("one")
    home("two")
    things = import_module(HOME).THINGS
    assert f"{HOME}.one" not in sys.modules
    assert things.find("one").__name__ == "one"
    assert f"{HOME}.two" in sys.modules
    assert list(things.entries()) == ["one", "two"]


def test_an_unknown_name_is_refused_with_those_that_exist(home: Callable[[str], None]) -> None:
    home("one")
    home("two")
    with pytest.raises(UserError, match="no thing named 'three'; there are: one, two"):
        import_module(HOME).THINGS.find("three")


@pytest.mark.parametrize(("missing", "is_passed_over"), [("triton", True), ("nonesuch", False)])
def test_only_kernels_may_miss_what_they_import(
    missing: str,
    is_passed_over: bool,
    home: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)  # type: ignore[arg-type]
    home("kernel", f"import {missing}\n")
    home("one")
    things = import_module(HOME).THINGS
    if is_passed_over:
        assert list(things.entries()) == ["one"]
    else:
        with pytest.raises(ModuleNotFoundError, match=missing):
            things.entries()


def test_a_name_belongs_to_whoever_registered_it_first(registry: ModuleType) -> None:
    things = registry.Registry("thing", home="epigrok.config")
    things.add("task", OneParameterTask)
    things.add("task", OneParameterTask)
    with pytest.raises(UserError, match=r"'task' is registered already, by .*\.task; choose"):
        things.add("task", UserError)
    assert things.find("task") is OneParameterTask


def test_a_file_that_is_loaded_again_replaces_its_entries(registry: ModuleType) -> None:
    def make(value: int) -> Callable[[], int]:
        def entry() -> int:
            return value

        return entry

    things = registry.Registry("thing", home="epigrok.config")
    things.add("mine", make(1))
    things.add("mine", make(2))
    assert things.find("mine")() == 2


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_a_plugin_is_imported_once_and_remembered(registry: ModuleType, tmp_path: Path) -> None:
    counter = tmp_path / "count"
    text = f"from pathlib import Path\nwith Path({str(counter)!r}).open('a') as f: f.write('x')\n"
    path = write(tmp_path / "little_plugin.py", text)
    assert registry.loaded_plugins() == []
    registry.load_plugin(path)
    registry.load_plugin(str(path))
    assert counter.read_text() == "x"
    assert registry.loaded_plugins() == [path]


def test_a_plugin_that_was_imported_by_its_name_is_remembered_too(
    registry: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "little_module.py", "")
    monkeypatch.syspath_prepend(tmp_path)
    import_module("little_module")
    registry.load_plugin(path)
    assert registry.loaded_plugins() == [path]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("little_missing.py", None, r"there is no plugin file .*little_missing\.py"),
        ("little_page.txt", "", r"a plugin must be a Python file, got .*little_page\.txt"),
        ("json.py", "", r"a module named 'json' is already loaded; rename .*json\.py"),
        ("little_broken.py", "1 / 0", r"cannot load .*little_broken\.py: ZeroDivisionError"),
        ("little_typo.py", "def", r"cannot load .*little_typo\.py: SyntaxError"),
        (
            "little_refused.py",
            "from epigrok.errors import UserError\nraise UserError('as it is')",
            r"^as it is$",
        ),
    ],
)
def test_a_plugin_that_cannot_be_loaded_is_told_in_a_sentence(
    name: str, text: str | None, message: str, registry: ModuleType, tmp_path: Path
) -> None:
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    with pytest.raises(UserError, match=message):
        registry.load_plugin(path)
    assert registry.loaded_plugins() == []


def test_a_plugin_that_failed_can_be_mended_and_loaded(
    registry: ModuleType, tmp_path: Path
) -> None:
    path = write(tmp_path / "little_mended.py", "raise RuntimeError('not yet')")
    with pytest.raises(UserError, match="RuntimeError: not yet"):
        registry.load_plugin(path)
    path.write_text("VALUE = 'mended and longer than before, so that no cache is used'")
    registry.load_plugin(path)
    assert registry.loaded_plugins() == [path]


def test_what_a_plugin_defines_is_traced_to_its_file_and_content(
    registry: ModuleType, tmp_path: Path
) -> None:
    path = write(tmp_path / "little_origin.py", "def thing(): ...\n")
    registry.load_plugin(path)
    thing = sys.modules["little_origin"].thing
    first = registry.plugin_of(thing)
    assert first.file == "little_origin.py"
    assert registry.plugin_of(thing) == first
    path.write_text("def thing(): ...\n# changed\n")
    assert registry.plugin_of(thing).digest != first.digest


def test_what_is_built_in_or_typed_in_has_no_file(registry: ModuleType) -> None:
    def typed_in() -> None: ...

    typed_in.__module__ = "a session without a file"
    assert registry.plugin_of(OneParameterTask) is None
    assert registry.plugin_of(typed_in) == registry.Plugin("an interactive session", "")
