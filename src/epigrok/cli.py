"""Command line: `epigrok COMMAND …`. Each command is a module under `commands/`.

A command's module is imported only when the command runs, so `epigrok --help` stays instant.
"""

import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from epigrok import __version__
from epigrok.errors import UserError
from epigrok.exit_codes import EXIT_FAILED, EXIT_STOPPED, EXIT_USER_ERROR
from epigrok.extras import LAB, extra_named, install_command, is_installed
from epigrok.registry import load_plugin
from epigrok.wording import failure_text, printable

PLUGIN = "--plugin"
COMMANDS = {
    "train": "train a preset, or resume its run directory",
    "evaluate": "score a checkpoint, vary its context, or show when it grokked",
    "demo": "watch two small models grok on a CPU",
    "sweep": "run or resume a grid of runs: on this machine, on SLURM or on Ray",
    "init": "write a commented example of a sweep to start from",
    "status": "show how far a sweep or a run has got",
    "check": "check that a run or a sweep is complete and undamaged, to the byte",
    "figure": "draw the paper's figures from a run or a sweep",
    "report": "write one HTML page on a sweep or a run: answer, figures, tables",
    "monitor": "say where each split stood along a run: memorised, generalised, lost",
    "separation": "show which uncertainty separates generalised from memorised runs",
    "compare": "show how the runs of settings ended, and whether two settings differ",
    "settings": "print the settings of runs and what they cost, as the paper's tables",
    "export": "write a table of all runs of a sweep to one Parquet file",
    "columns": "explain every table of a run and its columns",
    "tensorboard": "write a sweep's curves as TensorBoard event files",
    "zoo": "list the trained runs that come with the package",
    "bench": "measure how fast this machine trains, against plain PyTorch",
    "run": "work on one prepared run directory, as a sweep's workers do",
    "presets": "list the shipped recipes",
    "theory": "compute the solvable linear model: figures, exact delays, validity",
}
"""Command name -> one line of help; `commands/<name>.py` has `main(arguments) -> exit code`."""
ROOMS = {
    "files": ("export", "init", "tensorboard"),
    "lists": ("columns", "presets", "settings", "zoo"),
}
"""The commands whose modules live in a room of their own, such as `commands/lists/`."""

_WITHOUT_LAB = f"Only the core is installed; {install_command(LAB)} adds what the commands need."
_python_warning_text = warnings.formatwarning


def help_text() -> str:
    """What `epigrok --help` prints."""
    width = max(map(len, COMMANDS)) + 2
    lines = [f"  {name:<{width}}{summary}" for name, summary in COMMANDS.items()]
    return "\n".join(
        [
            "usage: epigrok COMMAND [ARGUMENTS]",
            "",
            "Watch a model move from memorising to generalising, through its own uncertainty.",
            "",
            "commands:",
            *lines,
            "",
            "`epigrok COMMAND --help` explains a command; `epigrok --version` prints the version.",
            "Every command takes `--plugin FILE`, a Python file with your own tasks, models,",
            "posteriors, figures or presets.",
            *([] if is_installed(LAB) else [f"\n{_WITHOUT_LAB}"]),
        ]
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    _open_what_is_closed()
    # Print our own warnings as one line.
    warnings.formatwarning = _warning_text
    try:
        return _run(arguments)
    except UserError as error:
        print(f"epigrok: error: {printable(str(error))}", file=sys.stderr)
        return EXIT_USER_ERROR
    except KeyboardInterrupt:
        return EXIT_STOPPED
    except BrokenPipeError:
        # The program that reads our output (head, less) has closed the pipe.
        sys.stdout = None
        return 0
    except OSError as error:
        # A full disk, a vanished mount. Files written before are complete.
        print(f"epigrok: {printable(failure_text(error))}", file=sys.stderr)
        return EXIT_FAILED
    except Exception as error:
        expected = _expected(error)
        if expected is None:
            raise
        exit_code, text = expected
        print(f"epigrok: {printable(text)}", file=sys.stderr)
        return exit_code


def _open_what_is_closed() -> None:
    """Give a process that was started without output somewhere to print to."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))


def _expected(error: Exception) -> tuple[int, str] | None:
    """Exit code and message for expected errors, such as too little memory; else None."""
    if isinstance(error, MemoryError | RuntimeError) and _is_out_of_memory(error):
        return EXIT_FAILED, f"not enough memory for these sizes: {error}"
    if type(error).__module__.endswith("duckdb"):
        # A table that turned out to be damaged only while it was read.
        return EXIT_USER_ERROR, f"error: {' '.join(str(error).split())}"
    return None


def _warning_text(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    line: str | None = None,
) -> str:
    """Format our own warnings as one line without the place in the code; leave others alone."""
    if category is UserWarning and Path(filename).is_relative_to(Path(__file__).parent):
        return f"epigrok: warning: {printable(str(message))}\n"
    return _python_warning_text(message, category, filename, lineno, line)


def _is_out_of_memory(error: MemoryError | RuntimeError) -> bool:
    """Whether this is Python's memory error, or one of torch's two (host and GPU)."""
    text = str(error).lower()
    return isinstance(error, MemoryError) or "allocate memory" in text or "out of memory" in text


def _load_plugins(arguments: Sequence[str]) -> list[str]:
    """Load the files that `--plugin` names and return the other arguments."""
    left: list[str] = []
    remaining = iter(arguments)
    for argument in remaining:
        flag, equals, value = argument.partition("=")
        if flag != PLUGIN:
            left.append(argument)
            continue
        file = value if equals else next(remaining, "")
        if not file:
            raise UserError(f"{PLUGIN} needs the path of a Python file")
        load_plugin(file)
    return left


def _run(arguments: list[str]) -> int:
    arguments = _load_plugins(arguments)
    if not arguments or arguments[0] in ("-h", "--help"):
        print(help_text(), flush=True)
        return 0
    if arguments[0] == "--version":
        print(f"epigrok {__version__}", flush=True)
        return 0
    name, *rest = arguments
    if name not in COMMANDS:
        raise UserError(f"no command named {name!r}; there are: {', '.join(COMMANDS)}")
    room = next((f"{room}." for room, names in ROOMS.items() if name in names), "")
    with extra_named():
        exit_code: int = import_module(f"epigrok.commands.{room}{name}").main(rest)
    return exit_code
