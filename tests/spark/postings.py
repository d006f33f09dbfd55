"""The postings of a match index over registrations in the pairs language, twice: read from a shard
as docs/match-index.md describes it, and built from the filters with numpy. Of the product only the
mapping of files is used.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from registrations.match_index.format.shard import Shard

Postings = dict[bytes, list[int]]  # name -> the versions that require it, ascending
_ENTRIES = (1 << 31) - 1


def of_shards(files: Iterable[Path]) -> Postings:
    """Read the postings of all shards."""
    found: Postings = {}
    for file in files:
        for name, ids in _of_shard(Shard(file)).items():
            found[name] = sorted([*found.get(name, ()), *ids])
    return found


def of_filters(folder: Path, stream_id: int, after: int) -> Postings:
    """Build the postings of the table `versions` in a folder of Parquet files."""
    names: list[bytes] = []
    ids: list[int] = []
    for row in pq.read_table(folder).to_pylist():
        if not _is_in(row, stream_id, after):
            continue
        for name in _names(json.loads(row["filter"])):
            names.append(name)
            ids.append(row["id"])
    different, which = np.unique(np.array(names, object), return_inverse=True)
    order = np.lexsort((ids, which))
    ends = np.cumsum(np.bincount(which, minlength=len(different)))
    parts = np.split(np.array(ids)[order], ends[:-1])
    return {name: part.tolist() for name, part in zip(different, parts, strict=True)}


def _of_shard(shard: Shard) -> Postings:
    views = {name: np.asarray(view).astype(np.int64) for name, view in shard.views.items()}
    runs = np.diff(views["run_conjunctions"])
    access = np.repeat(np.repeat(np.arange(shard.head.keys), np.diff(views["key_runs"])), runs)
    gates = np.repeat(views["run_gates"], runs)
    ends = views["dense_at"] & _ENTRIES
    found: dict[int, list[int]] = {}
    for number in range(shard.head.conjunctions):
        rest = views["rest"][views["rest_at"][number] : views["rest_at"][number + 1]].tolist()
        ids = views["ids"][ends[number] : ends[number + 1]].tolist()
        for key in {int(access[number]), int(gates[number]), *rest} - {0}:
            found.setdefault(key, []).extend(ids)
    at, names = views["name_at"], bytes(shard.views["names"])
    return {names[at[key] : at[key + 1]]: sorted(ids) for key, ids in found.items()}


def _is_in(row: Mapping[str, Any], stream_id: int, after: int) -> bool:
    if row["stream_id"] != stream_id or row["endpoint_id"] is None or row["suspended"]:
        return False
    return row["until"] is None or (row["until"] > after and row["until"] > row["since"])


def _names(filter: Mapping[str, Any]) -> list[bytes]:
    """Return a gate and its values, named as in docs/match-index.md."""
    gate = b"".join(_counted(filter.get(part)) for part in ("domain", "type", "application"))
    values = filter.get("attributes", {}).items()
    return [b"@" + gate, *(b"=" + _counted(path) + _value(value) for path, value in values)]


def _counted(text: str | None) -> bytes:
    data = b"" if text is None else text.encode()
    return b"*" if text is None else f"{len(data)}:".encode() + data


def _value(value: Any) -> bytes:
    if isinstance(value, str):
        return b"s" + value.encode()
    if value is None or isinstance(value, bool):
        return {None: b"n", True: b"t", False: b"f"}[value]
    if value == int(value):
        return b"i%d" % int(value)
    return b"d" + np.array([value], ">f8").tobytes().hex().encode()
