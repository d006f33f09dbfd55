"""The rules of a session without I/O: which events a listen gets, what each frame says, what an ack
frees. Plain module.

Every frame of a listen carries `prev`, the last sequence the listen was told about before it. A
reader whose last number is not `prev` has lost a frame; numbers between `prev` and `sequence` are
events it did not ask for (EMC-05).
"""

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

from delivery.listening.frames import Form, Heading, Liveness, T
from eventhub.access.principal import Principal
from eventhub.base import limits, metrics
from eventhub.base.errors import EventHubError, ListenerExists, TooManyRequests, UnknownListener
from eventhub.event.audience import is_visible_in_zone, may_see
from eventhub.event.envelope import ALL_MASK
from eventhub.eventlog.read import Position
from eventhub.eventlog.stored import Cursor, StoredEvent
from registrations.errors import FiltersTooCostly
from registrations.filters.ast import Node
from registrations.filters.evaluate import TypeHierarchy, holds, no_supertypes
from registrations.filters.pairs import Pairs


class Filter(NamedTuple):
    """What a listen wants: channel bits first (EMC-20), then the rest; of `system`, the events of
    its zone and those of the whole hub; and only what its reader may see (audience.py).
    """

    mask: int = ALL_MASK
    pairs: Pairs | None = None
    zone: str | None = None
    client: str | None = ""  # who is told; None: an operator, who sees all of the zone
    groups: frozenset[str] = frozenset()  # that the client is in
    tree: Node | None = None  # instead of pairs, in any language
    hierarchy: TypeHierarchy = no_supertypes  # for tests of types
    cost: int = 0  # of the tree for an event, in units of lang/weight.py

    @property
    def plain(self) -> bool:
        """True if the mask alone decides, as far as nothing in an event restricts it."""
        return self.zone is None and self.pairs is None and self.tree is None

    @property
    def looks(self) -> int:
        """How many events a listen looks at before others get their turn."""
        most = limits.LISTEN_TESTS_PER_SLICE_MAX // max(self.cost, 1)
        return max(1, min(limits.LISTEN_EVENTS_PER_SLICE_MAX, most))

    def seen_by(self, principal: Principal) -> "Filter":
        """The same for a reader as it is now."""
        client = None if principal.is_operator else principal.client
        return self._replace(client=client, groups=principal.groups)

    def wants(self, stored: StoredEvent, now_us: int) -> bool:
        """True if the event goes to the reader; an expired one is skipped and counted."""
        if not stored.mask & self.mask:
            return False
        event = stored.event
        if self.zone is not None and not is_visible_in_zone(event, self.zone):
            return False
        if self.pairs is not None and not self.pairs.matches(event):
            return False
        if self.tree is not None and not holds(self.tree, event, self.hierarchy):
            return False
        if self.client is not None and not may_see(event, self.client, self.groups):
            return False
        if event.expires_at_us and event.expires_at_us <= now_us:
            metrics.EXPIRED.inc()
            return False
        return True


class Listen:
    """One listen: its filter, and what its reader has been told. Without a name it is the only one
    of its connection.
    """

    __slots__ = (
        "_unacked",
        "filter",
        "missed",
        "name",
        "name_json",
        "started_head",
        "stream",
        "told",
        "window",
    )

    def __init__(self, name: str, stream: str, wanted: Filter, window: int | None = None) -> None:
        self.name = name
        self.name_json = orjson.dumps(name).decode() if name else ""
        self.stream = stream
        self.missed: Liveness = "recovery"  # what was there before the listen began is called so
        self.filter = wanted
        self.window = window
        self.told = 0  # the last sequence the reader knows of
        self.started_head = 0  # what is above was appended after the listen began
        self._unacked: deque[int] = deque()

    @property
    def full(self) -> bool:
        """True while as many events as the window allows are unacknowledged."""
        return self.window is not None and len(self._unacked) >= self.window

    def began(self, position: Position) -> dict[str, Any]:
        """The message that the listen has begun, and where."""
        self.told = position.cursor.sequence
        self.started_head = position.head
        return {
            "op": "listening",
            **self.named,
            "stream": self.stream,
            "cursor": position.cursor._asdict(),
            "head": position.head,
        }

    @property
    def named(self) -> dict[str, str]:
        """The field `listen` of its messages."""
        return {"listener": self.name} if self.name else {}

    def event(
        self,
        stored: StoredEvent,
        form: Form[T],
        registrations: Sequence[int] = (),
        latest: str = "",
    ) -> T:
        """The frame of an event that is wanted, naming the registrations that matched, and the
        latest version of its type if that is newer (FOX-20).
        """
        liveness = "live" if stored.sequence > self.started_head else self.missed
        heading = Heading(self.name_json, self.told, liveness, registrations, latest)
        frame = form.event(heading, stored)
        self.told = stored.sequence
        if self.window is not None:
            self._unacked.append(stored.sequence)
        return frame

    def acked(self, sequence: int) -> None:
        """All up to a sequence are dealt with."""
        while self._unacked and self._unacked[0] <= sequence:
            self._unacked.popleft()

    def position(self, cursor: Cursor) -> dict[str, Any] | None:
        """How far the hub has looked without finding anything for this reader;

        None if the reader knows.
        """
        if cursor.sequence == self.told:
            return None
        position = {**cursor._asdict(), "prev": self.told}
        self.told = cursor.sequence
        return position


class Session:
    """The listens of one socket by name."""

    def __init__(self) -> None:
        self.listens: dict[str, Listen] = {}

    def may_add(self, name: str) -> None:
        """Raises ListenerExists, TooManyRequests."""
        if name in self.listens:
            raise ListenerExists(listener=name)
        if len(self.listens) >= limits.LISTENERS_PER_SOCKET_MAX:
            raise TooManyRequests(
                "This socket has as many listens as it may; open another.",
                listeners_max=limits.LISTENERS_PER_SOCKET_MAX,
            )

    def may_hold(self, filter: Filter) -> None:
        """Raises FiltersTooCostly where an event would cost too much with it."""
        cost = filter.cost
        used = sum(one.filter.cost for one in self.listens.values())
        if cost and used + cost > limits.FILTERS_TRIED_MAX:
            raise FiltersTooCostly(cost=cost, used=used)

    def find(self, name: str) -> Listen:
        """Raises UnknownListener."""
        found = self.listens.get(name)
        if found is None:
            raise UnknownListener(listener=name)
        return found


def hello(*, client: str, zone: str) -> dict[str, Any]:
    """The hub's first message."""
    return {
        "op": "hello",
        "protocol": "eventhub.v1",
        "client": client,
        "zone": zone,
        "ping_s": limits.PING_INTERVAL_S,
        "listeners_max": limits.LISTENERS_PER_SOCKET_MAX,
    }


def refusal(error: EventHubError, listener: str | None = None) -> dict[str, Any]:
    """An error as a message;

    `gap` and `segment_mismatch` are messages of their own name, because they are answers.
    """
    metrics.REFUSED.labels(code=error.code).inc()
    op = "error"
    if error.code in ("gap", "segment_mismatch"):
        metrics.GAPS.labels(code=error.code).inc()
        op = error.code
    message = {"op": op, **error.problem()}
    if listener is not None:
        message["listener"] = listener
    return message
