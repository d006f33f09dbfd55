"""The instructions of the load generator: one job as JSON."""

from collections.abc import Sequence
from typing import NamedTuple


class Target(NamedTuple):
    """The path to which events are posted, and the headers; listeners use the same path."""

    port: int
    path: str
    headers: dict[str, str]


class HttpJob(NamedTuple):
    """POST the same body repeatedly, one request at a time on each connection.

    With `after`, a rising number is put between `body` and `after` in every request.
    """

    target: Target
    body: str
    connections: int
    seconds: float
    warmup_s: float
    after: str | None = None


class NatsPublishJob(NamedTuple):
    """Publish the same message repeatedly to a JetStream, one at a time on each connection."""

    target: Target  # of the server; path and headers are empty
    body: str
    connections: int
    seconds: float
    warmup_s: float


class NatsLatencyJob(NamedTuple):
    """Publish messages to a JetStream one at a time, each when the last one was acknowledged and
    came to a push consumer on another connection; time their receipt.
    """

    target: Target  # of the server; path and headers are empty
    body: str
    samples: int


class SocketsJob(NamedTuple):
    """Listen on sockets, post to the target, and count event frames.

    `samples`: post one event at a time until so many were timed; 0: post for `seconds`, with at
    most `ahead` events that not all sockets have received yet. `library`: by an ordinary client
    library, one socket, timed. `pids`: of the servers, whose CPU time counts between the warm-up
    and the end of the posts alone.
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
    pids: Sequence[int] = ()
    ports: Sequence[int] = ()  # of further servers, which take sockets in turn
    lagging: int = 0  # further sockets, which hardly read: every other one does not at all
    history: str = ""  # the message that begins their second listen, to far more than they read


class TransportJob(NamedTuple):
    """Time events one at a time from POST to receipt, by one reader that waits on a transport."""

    target: Target
    body: str
    listen: str  # of the websocket
    transport: str  # websocket, sse or poll
    samples: int


class IdleJob(NamedTuple):
    """Let so many long polls wait, measure the server's memory, and end them all with one event."""

    target: Target
    body: str
    polls: int
    pid: int  # of the server


class ReplayJob(NamedTuple):
    """Read a stream from its first event on over one connection, and count."""

    target: Target
    listen: str  # of the websocket; empty: over HTTP
    events: int
    form: str = "protobuf"  # or json; over HTTP, that is a line for each event


class CursorJob(NamedTuple):
    """Send these listen messages on one socket in turn, repeatedly; time the first event of
    each.
    """

    target: Target
    listens: list[str]
    samples: int  # of each


class ChurnJob(NamedTuple):
    """Post these bodies in turn, `rate` events a second, while lines go through the bulk transport,
    `changes` a second; then wait until all is delivered. The record is written to `file`.
    """

    target: Target
    bodies: list[str]
    batch: int  # events of each
    rate: float
    changes: float
    seconds: float
    warmup_s: float
    stream: str
    stream_id: int
    endpoints: tuple[int, int]  # that registrations name, in turn
    port: int  # where these lead
    hot: int  # devices that registrations ask for
    prefix: str  # of the registrations' keys
    database: str
    file: str


class LatencyJob(NamedTuple):
    """Post these bodies in turn, one event each; each is pending to one callback and one websocket.

    `rate` events a second, constantly; 0: as many as are delivered, at most `ahead` in flight.
    """

    target: Target
    bodies: list[str]
    listen: str
    port: int  # of the callbacks
    rate: float
    seconds: float
    warmup_s: float
    ahead: int = 200
    connections: int = 16


class Attack(NamedTuple):
    """A hostile request to a route, and the codes one of which the answer must have."""

    route: str  # register, check, dry-run or listen
    name: str
    body: str
    codes: list[str]


class HostileJob(NamedTuple):
    """Send hostile requests at a constant rate, one after the other, while events of others are
    timed. The answers are written to `file`.
    """

    target: Target
    key: str  # of who attacks
    attacks: list[Attack]
    per_s: float
    others: LatencyJob
    file: str


class AgentsJob(NamedTuple):
    """Emit `per_s` events a second for patterns, time their outputs, frames and answers; meanwhile
    emit events for the agents of another client, and resume those that the hub suspends.
    """

    target: Target
    body: str  # NUMBER in it is replaced by a number below `patterns`
    patterns: int
    events: dict[str, str]  # listen messages
    outputs: dict[str, str]
    per_s: float
    seconds: float
    warmup_s: float
    other_key: str
    attacked: str  # path
    attack: str  # body
    attacks_per_s: float
    resumed: list[int]
    resumed_per_s: float


class NeighbourJob(NamedTuple):
    """Send the same request constantly, `per_s` times a second over a few connections, and time
    each from when it was due, for any answer.
    """

    target: Target
    method: str
    body: str
    per_s: float
    seconds: float
    warmup_s: float
    connections: int = 16
    patience_s: float = 30.0  # for answers that are late at the end


class CrowdJob(NamedTuple):
    """Send the same request repeatedly on each connection, for any answer; with `listen`, connect
    so many websockets at once and read what arrives.
    """

    target: Target
    method: str
    body: str
    connections: int
    seconds: float
    listen: str = ""
    keys: tuple[str, ...] = ()  # of the clients that connect in turn; empty: the target's own
    addresses: int = 0  # of loopback, from which the connections come in turn; 0: the usual one
    requests_max: int = 0  # 0: no bound


class SessionsJob(NamedTuple):
    """Connect consumer sessions, `per_socket` on each socket; emit `rate` events a second in
    requests of `batch`, and time them at each session; 0: measure the server's memory.
    """

    target: Target
    stream: str
    keys: tuple[str, ...]  # of the clients, to each of which `per_client` sessions belong
    per_client: int
    sessions: int
    per_socket: int
    devices: int
    pid: int  # of the server
    seconds: float
    warmup_s: float
    rate: float = 0.0
    batch: int = 20
    stalled: int = 0  # one of so many sockets is not read; 0: none
    producers: int = 8  # connections
    nats: bool = False  # the server is that of NATS


class AwayJob(NamedTuple):
    """Connect each session once, and time its first event, in turn with a listener; then read
    `read_events` through the first of them.
    """

    target: Target
    sessions: list[str]
    listen: dict[str, str]  # of the listener, without op and name
    matching_every: int  # every so many events match
    read_events: int
    pid: int  # of the server


class PullJob(NamedTuple):
    """Read so many stored events by pulls of these sessions, each over one of the ports, at most
    `most` in a request; without sessions by long polls of the target.
    """

    target: Target
    ports: list[int]
    stream: str
    sessions: list[str]
    most: int
    events: int


Job = (
    HttpJob
    | NatsPublishJob
    | NatsLatencyJob
    | SocketsJob
    | TransportJob
    | IdleJob
    | ReplayJob
    | CursorJob
    | ChurnJob
    | LatencyJob
    | HostileJob
    | AgentsJob
    | NeighbourJob
    | CrowdJob
    | SessionsJob
    | AwayJob
    | PullJob
)
_ALL: tuple[type[Job], ...] = (
    *(HttpJob, NatsPublishJob, NatsLatencyJob, SocketsJob, TransportJob, IdleJob),
    *(ReplayJob, CursorJob),
    *(ChurnJob, LatencyJob, HostileJob, AgentsJob, NeighbourJob, CrowdJob, SessionsJob),
    *(AwayJob, PullJob),
)
KINDS: dict[str, type[Job]] = {kind.__name__: kind for kind in _ALL}
