"""The rows of a JSON-lines table's last step, read from the end of the file.

A finished run of the paper's size has a megabyte of rows, of which a table of final results needs
the last few kilobytes.
"""

import re
from pathlib import Path

_FIRST_PEEK_BYTES = 32_768
_STEP = re.compile(rb'"step"\s*:\s*(\d+)')


def last_step_lines(path: Path) -> list[bytes]:
    """The whole lines at the end of a file that have the step of the last one."""
    num_bytes = _FIRST_PEEK_BYTES
    with path.open("rb") as file:
        size = file.seek(0, 2)
        while True:
            start = max(0, size - num_bytes)
            file.seek(start)
            chunk = file.read(size - start)
            # The last line may be cut short, and the first one of a chunk that starts inside.
            whole = chunk[: chunk.rfind(b"\n") + 1].splitlines()[start > 0 :]
            last = _same_step_from_the_end(whole)
            if start == 0 or len(last) < len(whole):
                return last
            num_bytes *= 4


def _same_step_from_the_end(lines: list[bytes]) -> list[bytes]:
    last: list[bytes] = []
    step = None
    for line in reversed(lines):
        match = _STEP.search(line)
        if match is None:
            continue
        if step is not None and match[1] != step:
            break
        step = match[1]
        last.append(line)
    return last[::-1]
