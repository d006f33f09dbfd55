"""A parser of server-sent events, without I/O. Plain module.

Source: the HTML standard, "Parsing an event stream"; the hub ends lines with a line feed alone.
"""

from typing import NamedTuple


class ServerSent(NamedTuple):
    """One event of a stream of events."""

    event: str
    data: str
    id: str


class EventStream:
    """The state of the parser between chunks."""

    def __init__(self) -> None:
        self._rest = b""
        self._fields: dict[str, list[str]] = {}
        self._id = ""

    def feed(self, chunk: bytes) -> list[ServerSent]:
        """Return the events that a chunk of bytes completes."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        found = []
        for line in lines:
            complete = self._line(line.removesuffix(b"\r").decode())
            if complete is not None:
                found.append(complete)
        return found

    def _line(self, line: str) -> ServerSent | None:
        if line:
            name, _, value = line.partition(":")
            if name:  # a line that begins with a colon is a comment: a heartbeat
                self._fields.setdefault(name, []).append(value.removeprefix(" "))
            return None
        fields, self._fields = self._fields, {}
        self._id = fields.get("id", [self._id])[-1]
        if "data" not in fields:
            return None
        return ServerSent(fields.get("event", ["message"])[-1], "\n".join(fields["data"]), self._id)
