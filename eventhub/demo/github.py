"""GitHub's webhook payloads as events, from an npm package. Plain module.

The package is `@octokit/webhooks-examples`, which `make setup` fetches into the virtual
environment.
"""

import json
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(sys.prefix) / "share" / "eventhub-demo" / "node_modules"
EXAMPLES = FOLDER / "@octokit" / "webhooks-examples" / "api.github.com" / "index.json"
BODY_BYTES_MAX = 256 * 1024  # a payload beyond it is left out
NODE = "github.com"

Draft = dict[str, Any]  # an event in the form of the emit route, without its id

_TEXTS = ("action", "ref", "ref_type", "state", "conclusion")
_NAMED = {"repository": "full_name", "sender": "login", "organization": "login", "label": "name"}
_NUMBERED = ("issue", "pull_request", "discussion", "milestone")


class Payload(NamedTuple):
    """One webhook call: GitHub's name of the event, such as `issues`, and its content."""

    name: str
    content: dict[str, Any]


def read_payloads(path: Path = EXAMPLES) -> list[Payload]:
    """Read all payloads; none if the package was not fetched."""
    try:
        entries = json.loads(path.read_bytes())
    except FileNotFoundError:
        return []
    return [
        Payload(entry["name"], content)
        for entry in entries
        for content in entry["examples"]
        if len(json.dumps(content)) <= BODY_BYTES_MAX
    ]


def draft(payload: Payload) -> Draft:
    """Return the event: its type is GitHub's name and action (`issues.opened`), its body the
    payload.
    """
    action = payload.content.get("action")
    return {
        "domain": "github",
        "type": f"{payload.name}.{action}" if isinstance(action, str) else payload.name,
        "channels": ["github"],
        "attributes": attributes(payload),
        "node": NODE,
        "body": payload.content,
    }


def attributes(payload: Payload) -> dict[str, str | int | bool]:
    """Return flat attributes to filter by; those that the payload lacks are left out."""
    content = payload.content
    found: dict[str, str | int | bool] = {"event": payload.name}
    for name in _TEXTS:
        if isinstance(value := content.get(name), str) and value:
            found[name] = value
    for name, field in _NAMED.items():
        if isinstance(value := _field(content, name, field), str):
            found[name] = value
    if isinstance(private := _field(content, "repository", "private"), bool):
        found["private"] = private
    for name in _NUMBERED:
        if isinstance(number := _field(content, name, "number"), int):
            found["number"] = number
    return found


def endless(payloads: Sequence[Payload], seed: int) -> Iterator[Draft]:
    """Yield all payloads in a shuffled order, again and again."""
    order = list(payloads)
    shuffle = random.Random(seed).shuffle  # noqa: S311 - an order, not a secret
    while order:
        shuffle(order)
        yield from map(draft, order)


def _field(content: dict[str, Any], name: str, field: str) -> Any:
    value = content.get(name)
    return value.get(field) if isinstance(value, dict) else None
