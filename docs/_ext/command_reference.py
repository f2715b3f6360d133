"""The directive `command-reference`: what every command's parser says of itself."""

import os
from contextlib import redirect_stdout, suppress
from io import StringIO

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from epigrok.cli import COMMANDS, main

EXAMPLES = {"train": ["icl-tiny"]}
"""What the help of a command needs: the fields of `train` are those of a preset."""


class CommandReference(SphinxDirective):
    """A section per command with its help text."""

    def run(self) -> list[nodes.Node]:
        """Build the sections."""
        lines: list[str] = []
        for name, summary in COMMANDS.items():
            sentence = f"{summary[0].upper()}{summary[1:]}."
            lines += [
                f"## `epigrok {name}`",
                "",
                sentence,
                "",
                "```text",
                *help_of(name, *EXAMPLES.get(name, [])),
                "```",
                "",
            ]
        parent = nodes.Element()
        self.state.nested_parse(StringList(lines, "epigrok --help"), 0, parent, match_titles=True)
        return parent.children


def help_of(*words: str) -> list[str]:
    """What `epigrok WORDS --help` prints, without colours, 100 columns wide."""
    os.environ |= {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
    printed = StringIO()
    with redirect_stdout(printed), suppress(SystemExit):
        main([*words, "--help"])
    return [line.rstrip() for line in printed.getvalue().splitlines()]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_directive("command-reference", CommandReference)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
