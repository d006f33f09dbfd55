"""Where one listen stands, over all its connections and whatever door they use: the reader's rules
of the session protocol, without I/O. Plain module.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import orjson

from eventhub_client.errors import refusal
from eventhub_client.types import (
    NOTHING,
    At,
    Cursor,
    Delivered,
    LossDetected,
    Snapshot,
    Start,
    StateItem,
)

NAME = "client"  # of the one listen on a socket of its own
Item = Delivered | Snapshot


class Asked(NamedTuple):
    """What a listen is for."""

    stream: str
    start: Start = "now"
    mask: int | list[str] | None = None  # 64 channel bits, or channels by name
    wanted: Mapping[str, Any] = NOTHING  # pairs; or language and filter; or registrations
    state: Literal["", "gap", "always", "never"] = ""  # of a keyed stream; empty: not said


class Place:
    """`take` every message of the hub, in order; after a broken connection ask again with
    `request` or `query`.
    """

    def __init__(self, asked: Asked) -> None:
        self.stream = asked.stream
        self.start: Start = asked.start
        self._asked = asked
        self._state = asked.state
        self._parts: list[StateItem] = []  # of a snapshot that is still coming

    def request(self) -> str:
        """The message that begins or resumes the listen on a websocket."""
        asked = self._asked
        fields: dict[str, Any] = {"op": "listen", "listener": NAME, "stream": asked.stream}
        if asked.mask is not None:
            fields["mask"] = str(asked.mask) if isinstance(asked.mask, int) else asked.mask
        fields.update(asked.wanted)
        if self._state:
            fields["state"] = self._state
        self._parts = []  # a snapshot that was cut off begins anew
        fields["from"] = _from(self.start)
        return orjson.dumps(fields).decode()

    def query(self) -> dict[str, str]:
        """The same as parameters of the listen door."""
        query = {"from": from_text(self.start), **query_of(self._asked.mask, self._asked.wanted)}
        return {**query, "state": self._state} if self._state else query

    def take(self, message: dict[str, Any]) -> Item | None:
        """What a message of the hub means.

        Raises HubProblem for a refusal (GapError, SegmentMismatchError and others), LossDetected
        for a lost frame.
        """
        op = message["op"]
        if op == "event":
            delivered = Delivered.of(message)
            self._follows(delivered.prev)
            self.start = delivered.cursor
            return delivered
        if op == "listening":
            self.start = _cursor(message["cursor"])
        elif op == "position":
            self._moved(message)
        elif op == "ping":
            self._moved(message["positions"].get(NAME))
        elif op == "state":
            self._parts.append(StateItem.of(message))
        elif op == "state_end":
            return self._complete(_cursor(message["cursor"]))
        elif op in ("gap", "segment_mismatch", "error") and message.get("then") != "state":
            raise refusal(self.known(message))
        return None

    def _complete(self, cursor: Cursor) -> Snapshot:
        self.start = cursor
        if self._state == "always":
            self._state = "gap"  # from here on only what was missed
        items, self._parts = tuple(self._parts), []
        return Snapshot(items, cursor)

    def known(self, problem: dict[str, Any]) -> dict[str, Any]:
        """A problem document, with the last number this listen knew if there is one."""
        if isinstance(self.start, Cursor):
            return {**problem, "known": self.start.sequence}
        return problem

    def _moved(self, position: dict[str, Any] | None) -> None:
        if position is not None:
            if "prev" in position:
                self._follows(position["prev"])
            self.start = _cursor(position)

    def _follows(self, prev: int) -> None:
        if isinstance(self.start, Cursor) and prev != self.start.sequence:
            raise LossDetected(known=self.start.sequence, prev=prev)


def from_text(start: Start) -> str:
    """A start as it stands in query strings."""
    return start if isinstance(start, str) else start.text


def query_of(mask: int | list[str] | None, wanted: Mapping[str, Any]) -> dict[str, str]:
    """A filter as parameters of the listen door; attributes and JSON languages are JSON text."""
    query = {name: _parameter(value) for name, value in wanted.items()}
    if isinstance(mask, int):
        query["mask"] = str(mask)
    elif mask is not None:
        query["channels"] = ",".join(mask)
    return query


def _parameter(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return orjson.dumps(value).decode()


def _from(start: Start) -> Any:
    if isinstance(start, Cursor):
        return start._asdict()
    return {"time": start.text} if isinstance(start, At) else start


def _cursor(found: dict[str, Any]) -> Cursor:
    return Cursor(found["segment"], found["sequence"])
