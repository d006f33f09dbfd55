"""What the load generator is told: one job as JSON. Plain."""

from typing import NamedTuple


class Target(NamedTuple):
    """Where events are posted, and with which headers; a listen door answers at the same path."""

    port: int
    path: str
    headers: dict[str, str]


class HttpJob(NamedTuple):
    """POST the same body over and over, one request at a time on each connection.

    With `after`, a rising number is put between `body` and `after` in every request.
    """

    target: Target
    body: str
    connections: int
    seconds: float
    warmup_s: float
    after: str | None = None


class SocketsJob(NamedTuple):
    """Listen on sockets, post to the target, and count event frames.

    `samples`: post one event at a time until so many were timed; 0: post for `seconds`, with at
    most `ahead` events that not all sockets have received yet. `library`: by an ordinary client
    library, one socket, timed.
    """

    target: Target
    body: str
    events_per_body: int
    listen: str  # the message that begins a listen; empty: nothing is sent or awaited
    mark: str  # how a frame of an event begins
    sockets: int
    connections: int
    ahead: int
    seconds: float
    warmup_s: float
    samples: int = 0
    library: bool = False


class DoorJob(NamedTuple):
    """Time events one at a time from POST to receipt, by one reader that waits at a door."""

    target: Target
    body: str
    listen: str  # of the websocket
    door: str  # websocket, sse or poll
    samples: int


class IdleJob(NamedTuple):
    """Let so many long polls wait, weigh the server, and end them all with one event."""

    target: Target
    body: str
    polls: int
    pid: int  # of the server


class ReplayJob(NamedTuple):
    """Read a stream from its first event on in protobuf, over one connection, and count."""

    target: Target
    listen: str  # of the websocket; empty: over HTTP
    events: int


class CursorJob(NamedTuple):
    """Send these listens on one socket in turn, again and again; time the first event of each."""

    target: Target
    listens: list[str]
    samples: int  # of each


Job = HttpJob | SocketsJob | DoorJob | IdleJob | ReplayJob | CursorJob
KINDS: dict[str, type[Job]] = {
    kind.__name__: kind for kind in (HttpJob, SocketsJob, DoorJob, IdleJob, ReplayJob, CursorJob)
}
