"""What somebody may have done to a run directory before we look into it."""

import json
import os
import random
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import torch
from hypothesis import strategies as st
from safetensors import SafetensorError
from safetensors.torch import load, save

from epigrok.checkpoint_files import DIGESTS, write_digests
from epigrok.evaluation.schema import TABLES
from epigrok.files import digest_of, read_regular
from epigrok.records.directory import CONFIG, PARQUET, SWEEP, WORLD
from epigrok.records.holder import LEASE
from epigrok.records.manifest import DESCRIPTION, DONE

DOCUMENTS = (CONFIG, DESCRIPTION, "status.json", "provenance.json", LEASE, DONE)
LINES = tuple(table.file for table in TABLES.values() if table.file)
FOLDERS = ("checkpoints", "positions", "report", "figures", "checkpoints/step-20")
OTHERS = (WORLD, PARQUET, "log.txt", "../" + SWEEP)
CHECKPOINTS = tuple(
    f"checkpoints/step-{step}/{name}"
    for step in (20, 12)
    for name in ("model.safetensors", "resume.pt", "tables.json", DIGESTS)
)
NAMES = (*DOCUMENTS, *LINES, *OTHERS, *CHECKPOINTS, *FOLDERS)
DEEP = "[" * 100_000 + "]" * 100_000

_TEXTS = ("", "[/red]", "\x1b[31m", "../../x", "/dev/zero", "a" * 300, "\ud800", "1e999", "run_id")
_NUMBERS = (1e300, -1, 0, 2**63, 10**30, 10**400, float("nan"), float("inf"))
ODD = st.sampled_from((*_TEXTS, *_NUMBERS, True, None, [], {}, [[]]))
VALUES = st.recursive(
    ODD | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ODD.map(str), inner, max_size=3),
    max_leaves=6,
)


@dataclass(frozen=True)
class Damage:
    """One change of one file."""

    name: str
    kind: str
    value: Any
    chance: int
    """Decides which part of the file is meant."""


DAMAGES = st.builds(
    Damage,
    name=st.sampled_from(NAMES),
    kind=st.sampled_from(
        ["value"] * 6
        + ["content", "bytes", "flip", "cut", "twice", "deep", "key", "tensor", "tensor"]
        + ["pipe", "folder", "link", "linked folder", "device", "gone", "empty"]
    ),
    value=VALUES,
    chance=st.integers(0, 2**32),
)


def apply(damage: Damage, run: Path, outside: Path) -> None:
    """Do it; `outside` is a folder with a file that nobody may touch."""
    path, chance = run / damage.name, random.Random(damage.chance)
    content = path.read_bytes() if path.is_file() else b"{}\n"
    above = (run / folder for folder in Path(damage.name).parents)
    if any(folder.exists() and not folder.is_dir() for folder in above):
        return  # an earlier damage left no folder for this file
    with suppress(OSError):
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    path.parent.mkdir(parents=True, exist_ok=True)
    targets = {"link": outside / "file", "linked folder": outside, "device": Path("/dev/zero")}
    if damage.kind == "pipe":
        os.mkfifo(path)
    elif damage.kind == "folder":
        path.mkdir()
    elif damage.kind in targets:
        path.symlink_to(targets[damage.kind])
    elif damage.kind != "gone":
        path.write_bytes(_changed(content, damage, chance))


def _changed(content: bytes, damage: Damage, chance: random.Random) -> bytes:
    changed = bytearray(content or b"{}")
    lines = content.splitlines(keepends=True) or [b""]
    number = chance.randrange(len(lines))
    if damage.kind == "empty":
        return b""
    if damage.kind == "bytes":
        return chance.randbytes(40)
    if damage.kind == "deep":
        return DEEP.encode()
    if damage.kind == "tensor":
        return _changed_tensors(content, chance)
    if damage.kind == "content":
        return (json.dumps(damage.value) + "\n").encode()
    if damage.kind == "cut":
        return content[: chance.randrange(len(content) + 1)]
    if damage.kind == "twice":
        return b"".join([*lines[: number + 1], *lines[number:]])
    if damage.kind == "flip":
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
        return bytes(changed)
    if damage.name in LINES:
        lines[number] = changed_document(lines[number], damage, chance)
        return b"".join(lines)
    return changed_document(content, damage, chance)


def _changed_tensors(content: bytes, chance: random.Random) -> bytes:
    """Tensors of which one is another, is called another name or is gone."""
    try:
        tensors = load(content)
    except SafetensorError:
        return content + b"\xff"
    name = chance.choice(sorted(tensors))
    found = tensors.pop(name)
    numbers = [chance.choice((-1, 10**6, 2**62)) for _ in range(min(3, found.numel()))]
    changed = torch.cat([torch.tensor(numbers).to(found), found.flatten()[len(numbers) :]])
    others: list[dict[str, torch.Tensor]] = [
        {},
        {"other": found},
        {name: found[:-1].contiguous()},
        {name: found[None].contiguous()},
        {name: found.to(torch.float16)},
        {name: found.double() * float("nan")},
        {name: changed},
        {name: changed.view(found.shape)},
    ]
    return save(tensors | chance.choice(others))


def changed_document(content: bytes, damage: Damage, chance: random.Random) -> bytes:
    """A JSON document with another value, or another key, somewhere in it."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return content + b"\xff"
    places = list(_places(document))
    if places:
        container, key = chance.choice(places)
        container[key] = damage.value
        if damage.kind == "key" and isinstance(container, dict):
            container[str(damage.value)] = container.pop(key)
    return (json.dumps(document) + "\n").encode()


def _places(document: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of a document."""
    keys: Sequence[Any] = ()
    if isinstance(document, dict):
        keys = list(document)
    elif isinstance(document, list):
        keys = range(len(document))
    return [(document, key) for key in keys] + [
        place for key in keys for place in _places(document[key])
    ]


def seal(run: Path) -> None:
    """Write digests anew, as somebody would who wants a damage to go unnoticed."""
    with suppress(OSError, ValueError):
        for digests in run.glob(f"checkpoints/step-*/{DIGESTS}"):
            if digests.is_file():
                write_digests(digests)
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        manifest = json.loads((run / DONE).read_bytes() if (run / DONE).is_file() else "{}")
        manifest["files"] = {name: digest_of(run / name) for name in manifest["files"]}
        for name, extent in manifest["tables"].items():
            content = read_regular(run / TABLES[name].file)
            digest = blake2b(content).hexdigest()
            extent |= {"rows": content.count(b"\n"), "bytes": len(content), "digest": digest}
        (run / DONE).write_text(json.dumps(manifest))
