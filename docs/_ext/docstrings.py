"""Docstrings as they are written here: Google's sections, and formulas between dollars."""

import re

from sphinx.application import Sphinx
from sphinx.ext.napoleon import Config, GoogleDocstring

_DISPLAYED = re.compile(r"^( *)\$\$ *(.+?) *\$\$$", re.MULTILINE | re.DOTALL)
_FENCED = re.compile(r"^( *)```(\w+)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_NAMED_TUPLE = re.compile(r"Alias for field number \d+|^Create new instance of .+$", re.MULTILINE)
_CODE = re.compile(r"(?<!:):\n\n(?=    )")
_INLINE = re.compile(r"(?<![\w$\\])\$([^$\n]+)\$(?![\w$])")


def as_markup(
    app: Sphinx, what: str, name: str, subject: object, options: object, lines: list[str]
) -> None:
    """Turn a docstring into the markup that Sphinx reads, in place."""
    # What Python itself says of a named tuple and its fields says nothing.
    text = _NAMED_TUPLE.sub("", _FENCED.sub(_code, "\n".join(lines)))
    text = _INLINE.sub(r":math:`\1`", _DISPLAYED.sub(_block, text))
    # What is indented after a colon and an empty line is code, or set as it stands.
    text = _CODE.sub("::\n\n", text)
    # Taken for an attribute, its first words up to a colon would be read as a type.
    kind = "function" if what in ("attribute", "data", "property") else what
    lines[:] = GoogleDocstring(text, Config(), app, kind, name, subject, options).lines()


def _block(match: re.Match[str]) -> str:
    indent, formula = match.groups()
    formula_lines = "\n".join(f"{indent}   {line.strip()}" for line in formula.splitlines())
    return f"\n{indent}.. math::\n\n{formula_lines}\n"


def _code(match: re.Match[str]) -> str:
    indent, language, code = match.groups()
    lines = "\n".join(f"   {line}".rstrip() for line in code.splitlines())
    # Dots that stand for something are no Python: highlighted all the same.
    return f"\n{indent}.. code-block:: {language}\n{indent}   :force:\n\n{lines}\n"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("autodoc-process-docstring", as_markup)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
