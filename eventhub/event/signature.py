"""The digest of an event's tags, its attribute names (FOX 4.2.1, 4.7; FOX-06). Plain module."""

import hashlib
from collections.abc import Iterable

import orjson


def signature(names: Iterable[str]) -> str:
    """Return 32 hexadecimal digits of an event's attribute names, in any order."""
    return hashlib.sha256(orjson.dumps(sorted(names))).hexdigest()[:32]
