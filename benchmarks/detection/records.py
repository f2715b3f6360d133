"""A run's record: one compressed file of arrays, many of them in a few shards.

Fields, with L looks, K sets (the seen one first) and the rows of `looks.py`:

    meta                  JSON: name, kind, role, truth, seed, sets, numbers' names
    scalars    (L, ·)     step, phase, seconds, training loss and accuracy, weight norm
    numbers    (L, K, ·)  accuracy and the statistics of one set
    variants   (L, K-1, ·, 4)   ratio, its log standard error, τ(watched), τ(seen)
    deep       (L, ·)     learning coefficient, commutator, seconds; nan where not computed
    network    (L, K-1, ·, 4)   the same under noise on the network; nan where not computed
    rows:NAME  (L, K, ·)  answers, labels, probability, entropy, margin, tolerance, EU, row by row
    features, weight, bias   half precision, at the looks listed in `deep_index`
"""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

SCALARS = (
    "step", "phase", "train seconds", "seconds ratio", "seconds eu", "seconds whole",
    "train loss", "train accuracy", "weight norm",
)  # fmt: skip
DEEP = ("llc 1e-05", "llc 0.0001", "commutator", "seconds llc", "seconds commutator")
NETWORK = ("whole", "whole, 4 draws", "whole, 64 rows", "all but head", "learnt deviation")
_UNKNOWN = (np.nan,) * 4
SHARD_BYTES = 14_000_000


def pack(meta: dict[str, Any], looks: list[dict[str, Any]]) -> bytes:
    """The record of a run as one compressed file."""
    number_names = list(looks[0]["numbers"][0])
    variant_names = list(looks[0]["variants"][0])
    arrays: dict[str, np.ndarray] = {
        "scalars": np.array([[look[name] for name in SCALARS] for look in looks]),
        "numbers": np.array(
            [[[part[n] for n in number_names] for part in look["numbers"]] for look in looks],
            dtype=np.float32,
        ),
        "variants": np.array(
            [[[part[n] for n in variant_names] for part in look["variants"]] for look in looks],
            dtype=np.float32,
        ),
        "deep": np.array([[look["deep"].get(n, np.nan) for n in DEEP] for look in looks]),
        "network": np.array(
            [
                [[part.get(n, _UNKNOWN) for n in NETWORK] for part in look["network"]]
                for look in looks
            ],
            dtype=np.float32,
        ),
    }
    for name in looks[0]["rows"][0]:
        longest = max(len(part[name]) for look in looks for part in look["rows"])
        arrays[f"rows:{name}"] = np.stack([_ragged(look["rows"], name, longest) for look in looks])
    deep_index = [index for index, look in enumerate(looks) if look["heads"]]
    arrays["deep_index"] = np.array(deep_index)
    for index in deep_index:
        heads = looks[index]["heads"]
        for number, head in enumerate(heads):
            features = head.features_ND[:256].numpy()
            arrays[f"features:{index}:{number}"] = features.astype(np.float16)
        arrays[f"weight:{index}"] = heads[0].head.weight_CD.numpy().astype(np.float16)
        if heads[0].head.bias_C is not None:
            arrays[f"bias:{index}"] = heads[0].head.bias_C.numpy().astype(np.float32)
    meta = {**meta, "numbers": number_names, "variants": variant_names, "network": NETWORK}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, meta=np.array(json.dumps(meta)), **arrays)
    return buffer.getvalue()


def _ragged(parts: list[dict[str, np.ndarray]], name: str, longest: int) -> np.ndarray:
    """Rows of all sets side by side; a set with fewer rows begins again with its first one."""
    return np.stack([np.resize(part[name], longest) for part in parts])


def append(folder: Path, name: str, content: bytes) -> None:
    """Add a record to the last shard in `folder`, or to a new one where that is full."""
    folder.mkdir(parents=True, exist_ok=True)
    shards = sorted(folder.glob("records-*.zip"))
    path = shards[-1] if shards else folder / "records-00.zip"
    if path.exists() and path.stat().st_size + len(content) > SHARD_BYTES:
        path = folder / f"records-{len(shards):02d}.zip"
    with zipfile.ZipFile(path, "a", zipfile.ZIP_STORED) as shard:
        shard.writestr(f"{name}.npz", content)


def names(folder: Path) -> set[str]:
    """Names of the records in `folder`, and in the folders below it."""
    found: set[str] = set()
    for path in folder.rglob("records-*.zip"):
        with zipfile.ZipFile(path) as shard:
            found |= {name.removesuffix(".npz") for name in shard.namelist()}
    return found


def load(*folders: Path) -> dict[str, dict[str, Any]]:
    """All records in `folders` and below, by name."""
    found: dict[str, dict[str, Any]] = {}
    for path in (path for folder in folders for path in sorted(folder.rglob("records-*.zip"))):
        with zipfile.ZipFile(path) as shard:
            for name in shard.namelist():
                with np.load(io.BytesIO(shard.read(name))) as arrays:
                    record: dict[str, Any] = dict(arrays)
                record["meta"] = json.loads(str(record["meta"]))
                found[name.removesuffix(".npz")] = record
    return found
