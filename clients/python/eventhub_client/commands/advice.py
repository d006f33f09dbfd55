"""The hub's messages name routes; the command line names its commands instead. Plain module."""

import re
from functools import cache
from pathlib import Path

import orjson

TABLE = Path(__file__).with_name("api.json")  # what commands/api.py makes commands from
_ROUTE = re.compile(r"`?\b(GET|POST|PUT|PATCH|DELETE) (/v1/[\w/{}-]*[\w}])`?")
_PLACEHOLDER = re.compile(r"\{\w+\}")
_BY_HAND = {
    ("POST", "/v1/session"): "eventhub login NAME",
    ("PUT", "/v1/streams/{}"): "eventhub streams create STREAM",
}


def in_commands(message: str) -> str:
    """Return a message with `eventhub streams create STREAM` instead of PUT /v1/streams/{stream}.
    A route without a command stays.
    """
    return _ROUTE.sub(lambda found: _command(found) or found[0], message)


def _command(found: re.Match[str]) -> str:
    command = _commands().get((found[1], _PLACEHOLDER.sub("{}", found[2])))
    return f"`{command}`" if command else ""


@cache
def _commands() -> dict[tuple[str, str], str]:
    """Return the command of each route, whose parameters are `{}`."""
    found = {}
    for row in orjson.loads(TABLE.read_bytes())["commands"]:
        arguments = (name.strip("{}").upper() for name in _PLACEHOLDER.findall(row["path"]))
        route = (row["method"], _PLACEHOLDER.sub("{}", row["path"]))
        found[route] = " ".join(("eventhub", *row["words"], *arguments))
    return found | _BY_HAND
