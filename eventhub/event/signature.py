"""The signature of an event: what its tags, the names of its attributes, make it. Plain module.

Source: FOX 4.2.1, 4.7 (FOX-06).
"""

import hashlib
from collections.abc import Iterable

import orjson


def signature(names: Iterable[str]) -> str:
    """32 hexadecimal digits from the names of an event's attributes, whatever their order.

    Values do not count: events with the same tags have one signature. Only the top level counts.
    """
    return hashlib.sha256(orjson.dumps(sorted(names))).hexdigest()[:32]
