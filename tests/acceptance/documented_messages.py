"""Every message that a test receives is checked against the AsyncAPI document."""

import functools
import json
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema_rs

DOCUMENT = Path(__file__).resolve().parents[2] / "clients/typescript/asyncapi.json"
# they have the details of an error, which differ by its code
_WITH_DETAILS = {"error", "gap", "segment_mismatch", "status", "disconnected"}


class _Documented(NamedTuple):
    validator: jsonschema_rs.Validator
    fields: frozenset[str]


@functools.cache
def _messages(channel: str) -> dict[str, _Documented]:
    """Return the messages that the hub sends over a channel, by `op`."""
    document = json.loads(DOCUMENT.read_bytes())
    components = document["components"]
    found = {}
    for name in document["channels"][channel]["messages"]:
        if name.startswith("Sent"):
            message = components["messages"][name]
            schema = {**message["payload"], "components": {"schemas": components["schemas"]}}
            fields = frozenset(components["schemas"][name]["properties"])
            validator = jsonschema_rs.Draft202012Validator(schema)
            found[message["name"]] = _Documented(validator, fields)
    return found


def documented(message: dict[str, Any], channel: str) -> dict[str, Any]:
    """Return a message of the hub. Fails the test if the document has none like it."""
    known = _messages(channel).get(message["op"])
    assert known is not None, f"The AsyncAPI document has no {message['op']} in {channel}."
    known.validator.validate(message)
    if message["op"] not in _WITH_DETAILS:
        more = message.keys() - known.fields
        assert not more, f"The AsyncAPI document has no {more} in {message['op']}."
    return message
