"""The event of all benchmarks: 300 bytes of JSON as a caller sends it, and its stored bytes.
Plain.
"""

import json
from typing import Any

from eventhub.event.inbound import JSON, event_mask, parse, stored_bytes

EVENT_BYTES = 300
CLIENT = "bench"


def event() -> dict[str, Any]:
    """Return four attributes and a body, padded to the size."""
    made: dict[str, Any] = {
        "domain": "telecom",
        "type": "link.alarm",
        "attributes": {"site": "oslo-7", "severity": 4, "cleared": False, "load": 0.75},
        "node": "router-17",
        "body": {"text": ""},
    }
    made["body"]["text"] = "x" * (EVENT_BYTES - len(_compact(made)))
    return made


def one() -> bytes:
    return _compact(event())


def batch(count: int) -> bytes:
    return b"[" + b",".join([one()] * count) + b"]"


def numbered(incarnation: int) -> tuple[bytes, bytes]:
    """Return the bytes before and after the sequence of an event with a producer's id."""
    text = _compact({**event(), "id": {"incarnation": incarnation, "sequence": 0}})
    before, after = text.rsplit(b"0}}", 1)
    return before, b"}}" + after


def stored(type: str = "link.alarm") -> bytes:
    """Return the stored bytes of the event, as the emit route encodes them."""
    [parsed] = parse(_compact({**event(), "type": type}), JSON)
    mask = event_mask(parsed)
    assert isinstance(mask, int)
    return stored_bytes(parsed, client=CLIENT, mask=mask)


def _compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
