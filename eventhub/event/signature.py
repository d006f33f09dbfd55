"""The signature of an event, a digest of its tags: the names of its attributes. Plain module.

Source: FOX 4.2.1, 4.7 (FOX-06).
"""

import hashlib
from collections.abc import Iterable

import orjson


def signature(names: Iterable[str]) -> str:
    """Return 32 hexadecimal digits that depend on the names of an event's top-level attributes, in
    any order. Values do not count: events with the same tags have one signature.
    """
    return hashlib.sha256(orjson.dumps(sorted(names))).hexdigest()[:32]
