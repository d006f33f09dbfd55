"""The position of one listener across its connections and transports: the reader's rules of the
session protocol, without I/O. Plain module.
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

NAME = "client"  # of the only listener on a socket
Item = Delivered | Snapshot


class Subscription(NamedTuple):
    """What a listener requests."""

    stream: str
    start: Start = "now"
    mask: int | list[str] | None = None  # 64 channel bits, or channels by name
    filter: Mapping[str, Any] = NOTHING  # pairs; or language and filter; or registrations
    state: Literal["", "gap", "always", "never"] = ""  # of a keyed stream; empty: by default


class ReadPosition:
    """The state of a listener. `take` gets every message of the hub, in order; after a broken
    connection `request` or `query` resumes.
    """

    def __init__(self, subscription: Subscription) -> None:
        self.stream = subscription.stream
        self.start: Start = subscription.start
        self._subscription = subscription
        self._state = subscription.state
        self._parts: list[StateItem] = []  # of an incomplete snapshot

    def request(self) -> str:
        """Return the websocket message that starts or resumes the listener."""
        subscription = self._subscription
        fields: dict[str, Any] = {"op": "listen", "listener": NAME, "stream": subscription.stream}
        if subscription.mask is not None:
            fields["mask"] = (
                str(subscription.mask) if isinstance(subscription.mask, int) else subscription.mask
            )
        fields.update(subscription.filter)
        if self._state:
            fields["state"] = self._state
        self._parts = []  # an interrupted snapshot starts again
        fields["from"] = _from(self.start)
        return orjson.dumps(fields).decode()

    def query(self) -> dict[str, str]:
        """Return the same as query parameters of the listen route."""
        query = {
            "from": from_text(self.start),
            **query_of(self._subscription.mask, self._subscription.filter),
        }
        return {**query, "state": self._state} if self._state else query

    def take(self, message: dict[str, Any]) -> Item | None:
        """Return the event or snapshot that a message completes, if any; an event that was
        delivered before is none.

        Raises HubProblem for a refusal (GapError, SegmentMismatchError and others), LossDetected
        for a lost frame.
        """
        op = message["op"]
        if op == "event":
            return self._event(Delivered.of(message))
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
            raise refusal(self.with_known(message))
        return None

    def _event(self, delivered: Delivered) -> Delivered | None:
        known = self.start
        if isinstance(known, Cursor) and delivered.is_known(known):
            return None
        self._follows(delivered.prev)
        self.start = delivered.cursor
        return delivered

    def _complete(self, cursor: Cursor) -> Snapshot:
        self.start = cursor
        if self._state == "always":
            self._state = "gap"  # from now on only after a gap
        items, self._parts = tuple(self._parts), []
        return Snapshot(items, cursor)

    def with_known(self, problem: dict[str, Any]) -> dict[str, Any]:
        """Return a problem document with the listener's last sequence, if there is one."""
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
    """Return a start as a query parameter."""
    return start if isinstance(start, str) else start.text


def query_of(mask: int | list[str] | None, filter: Mapping[str, Any]) -> dict[str, str]:
    """Return a filter as query parameters; attributes and filters of JSON languages are JSON."""
    query = {name: _parameter(value) for name, value in filter.items()}
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
