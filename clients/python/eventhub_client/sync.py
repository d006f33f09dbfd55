"""The client for programs without an event loop: same calls, same answers, same exceptions.
Plain module.

`with SyncHubClient(url, key) as hub: for event in hub.listen("orders"): ...`. One thread runs the
event loop; the calls are thread-safe.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from eventhub.base import limits
from eventhub.event.identity import EventId
from eventhub_client.background import Background
from eventhub_client.history import HistoryQuery
from eventhub_client.outbox import DeadLetter, Outbox, OutboxOptions, OutboxStatus
from eventhub_client.profile import Profile
from eventhub_client.remote import Event, HubClient, Suppressor
from eventhub_client.sessions import ConsumerSession
from eventhub_client.state import State
from eventhub_client.types import Cursor, Delivered, Page, Receipt, Reply, Start, StateItem

T = TypeVar("T")


class SyncHubClient:
    """The blocking form of `HubClient`, which documents each call."""

    def __init__(self, base_url: str, credential: str, *, acting_as: str = "") -> None:
        self._hub = HubClient(base_url, credential, acting_as=acting_as)
        self._loop: Background | None = None

    def __enter__(self) -> "SyncHubClient":
        self._loop = Background()
        self._loop.run(self._hub.__aenter__())
        return self

    def __exit__(self, *_: object) -> None:
        self._run.run(self._hub.__aexit__())
        self._run.close()
        self._loop = None

    def emit(
        self,
        stream: str,
        events: Event | Sequence[Event],
        *,
        retry_for_s: float = 0.0,
        suppress: Suppressor | None = None,
    ) -> Receipt:
        emitting = self._hub.emit(stream, events, retry_for_s=retry_for_s, suppress=suppress)
        return self._run.run(emitting)

    @contextmanager
    def using(self, make: Callable[[HubClient], AbstractAsyncContextManager[T]]) -> Iterator[T]:
        """Run a helper of the asynchronous client in its thread: `with hub.using(lambda hub:
        Quench(hub, "debug")) as quench:`.
        """
        made = make(self._hub)
        found = self._run.run(made.__aenter__())
        try:
            yield found
        finally:
            self._run.run(made.__aexit__(None, None, None))

    def listen(self, stream: str, **filter: Any) -> Iterator[Delivered]:
        """Iterate over events; `start`, `mask`, `transport`, `on_gap`, domain, type, ... as in
        `HubClient.listen`. A hook for gaps runs in the other thread.
        """
        return self._run.iterate(self._hub.listen(stream, **filter))

    def page(
        self,
        stream: str,
        query: HistoryQuery | None = None,
        *,
        order: str = "forward",
        limit: int = limits.CLIENT_PAGE_EVENTS,
    ) -> Page:
        return self._run.run(self._hub.page(stream, query, order=order, limit=limit))

    def history(self, stream: str, **filter: Any) -> Iterator[Delivered]:
        """Iterate over stored events; `order`, `start` and the filter as in `HubClient.history`."""
        return self._run.iterate(self._hub.history(stream, **filter))

    def replay(
        self, stream: str, *, start: Start = "oldest", until: Cursor | None = None, **filter: Any
    ) -> Iterator[Delivered]:
        return self._run.iterate(self._hub.replay(stream, start=start, until=until, **filter))

    def event(self, stream: str, sequence: int) -> dict[str, Any]:
        return self._run.run(self._hub.event(stream, sequence))

    @contextmanager
    def state(self, stream: str) -> Iterator["SyncState"]:
        """Give a mapping that stays current: `with hub.state("prices") as state:`."""
        with self.using(lambda hub: hub.state(stream)) as state:
            yield SyncState(state, self._run)

    @contextmanager
    def session(self, name: str, **options: Any) -> Iterator["SyncConsumerSession"]:
        """Connect a consumer session: `with hub.session("alarms") as session: for event in
        session:`; the options as in `HubClient.session`.
        """
        with self.using(lambda hub: hub.session(name, **options)) as session:
            yield SyncConsumerSession(session, self._run)

    def pull(self, session: str, events: int = 100, **options: Any) -> list[Delivered]:
        """Pull the next events of a consumer session; the options as in `ConsumerSession.pull`."""
        return self._run.run(self._hub.session(session).pull(events, **options))

    def snapshot(self, stream: str) -> tuple[dict[str, StateItem], Cursor]:
        return self._run.run(self._hub.snapshot(stream))

    def call(self, method: str, path: str, body: Any = None) -> Any:
        return self._run.run(self._hub.call(method, path, body))

    def reply(
        self, method: str, path: str, body: Any = None, *, if_match: str = "", action: str = ""
    ) -> Reply:
        reply = self._hub.reply(method, path, body, if_match=if_match, action=action)
        return self._run.run(reply)

    def streams(self) -> list[dict[str, Any]]:
        return self._run.run(self._hub.streams())

    def segments(self, stream: str) -> list[dict[str, Any]]:
        return self._run.run(self._hub.segments(stream))

    def types(self) -> list[dict[str, Any]]:
        return self._run.run(self._hub.types())

    @property
    def _run(self) -> Background:
        if self._loop is None:
            raise RuntimeError("Use the client in `with`.")
        return self._loop


class SyncConsumerSession:
    """The blocking form of `ConsumerSession`."""

    def __init__(self, session: ConsumerSession, loop: Background) -> None:
        self._session = session
        self._loop = loop

    def __iter__(self) -> Iterator[Delivered]:
        return self._loop.iterate(aiter(self._session))

    def acknowledge(self, *events: Delivered, through: bool = False, stored: bool = False) -> None:
        self._loop.run(self._session.acknowledge(*events, through=through, stored=stored))

    def nak(self, *events: Delivered) -> None:
        self._loop.run(self._session.nak(*events))


class SyncState(Mapping[str, StateItem]):
    """The blocking form of `State`."""

    def __init__(self, state: State, loop: Background) -> None:
        self._state = state
        self._loop = loop

    @property
    def cursor(self) -> Cursor:
        return self._state.cursor

    def __getitem__(self, key: str) -> StateItem:
        return self._state[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._state)

    def __len__(self) -> int:
        return len(self._state)

    def reached(self, sequence: int) -> None:
        self._loop.run(self._state.reached(sequence))

    def changed(self) -> None:
        self._loop.run(self._state.changed())


class SyncOutbox:
    """The blocking form of `Outbox`, which sends in the background inside the block."""

    def __init__(
        self, path: Path | str, url: str, key: str, options: OutboxOptions | None = None
    ) -> None:
        self._arguments = (path, url, key, options)
        self._loop: Background
        self._outbox: Outbox

    def __enter__(self) -> "SyncOutbox":
        self._loop = Background()
        try:
            self._outbox = self._loop.run(self._open())
        except BaseException:
            self._loop.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.run(self._outbox.__aexit__())
        self._loop.close()

    def emit(self, stream: str, events: Event | Sequence[Event]) -> list[EventId]:
        return self._loop.run(self._outbox.emit(stream, events))

    def flush(self, timeout_s: float | None = None) -> OutboxStatus:
        return self._loop.run(self._outbox.flush(timeout_s))

    def status(self) -> OutboxStatus:
        return self._loop.run(self._outbox.status())

    def dead_letters(self) -> list[DeadLetter]:
        return self._loop.run(self._outbox.dead_letters())

    def drop(self, number: int) -> DeadLetter | None:
        return self._loop.run(self._outbox.drop(number))

    def requeue(self, number: int, event: Event | None = None) -> list[EventId]:
        return self._loop.run(self._outbox.requeue(number, event))

    def save_profile(self, **changes: Any) -> Profile:
        return self._loop.run(self._outbox.save_profile(**changes))

    @property
    def profile(self) -> Profile:
        return self._outbox.profile

    async def _open(self) -> Outbox:
        """Open the outbox inside the loop to which it belongs."""
        return await Outbox(*self._arguments).__aenter__()
