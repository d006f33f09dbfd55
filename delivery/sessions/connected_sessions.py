"""The sessions that the connections of one process serve, by id. Plain module.

Concurrency contract: one event loop.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial

from delivery.sessions.connected import ConnectedSession
from eventhub.base import metrics
from registrations.feed import CatalogChange, Feed


class ConnectedSessions:
    """Connected sessions, which notice when they may have got new streams."""

    def __init__(self, feed: Feed) -> None:
        self.by_id: dict[int, ConnectedSession] = {}
        self.any = asyncio.Event()  # set while there is one
        self._feed = feed
        self._subscriptions: dict[ConnectedSession, AbstractContextManager[None]] = {}

    def __contains__(self, session: ConnectedSession) -> bool:
        return session in self._subscriptions

    @contextmanager
    def changes(self) -> Iterator[Sequence[CatalogChange | None]]:
        """Collect the changes of registrations until the end of the block, in which positions are
        read and their sessions added.
        """
        changes: list[CatalogChange | None] = []

        def note(change: CatalogChange | None) -> None:
            changes.append(change)

        self._feed.listeners.add(note)
        try:
            yield changes
        finally:
            self._feed.listeners.discard(note)

    def add(self, session: ConnectedSession, changes: Iterable[CatalogChange | None] = ()) -> None:
        """Add a session that its connection is attached to; the connection of this process that
        served it before ends it. It notices registrations from now on, and those of `changes`.
        """
        subscription = self._feed.owner_subscription(session.owners, _notice(session))
        subscription.__enter__()
        self._subscriptions[session] = subscription
        for change in changes:
            _note_new_streams(session, change)
        before = self.by_id.get(session.settings.id)
        if before is not None:
            before.end("replaced")
        self.by_id[session.settings.id] = session
        self.any.set()
        metrics.CONNECTED_SESSIONS.labels(session.transport).inc()

    def remove(self, session: ConnectedSession) -> None:
        self._subscriptions.pop(session).__exit__(None, None, None)
        if self.by_id.get(session.settings.id) is session:
            del self.by_id[session.settings.id]
        if not self.by_id:
            self.any.clear()
        metrics.CONNECTED_SESSIONS.labels(session.transport).dec()


def _notice(session: ConnectedSession) -> Callable[[CatalogChange | None], None]:
    """Return the function that notices when a session may have got new streams."""
    return partial(_note_new_streams, session)


def _note_new_streams(session: ConnectedSession, change: CatalogChange | None) -> None:
    if change is None or change.owner in session.owners:
        session.may_have_new_streams = True
        session.waker.set()
