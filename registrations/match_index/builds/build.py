"""The build of one stream's match index, with its progress reported to the caller and in the
records that the console shows. SQL module.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psycopg

from eventhub.base import limits
from eventhub.base.errors import EventHubError
from eventhub.base.logs import get_logger
from eventhub.postgresql.connections import blocking
from registrations.match_index.builds import statements
from registrations.match_index.epochs.build import build_stream
from registrations.match_index.epochs.state import state_of
from registrations.match_index.format.builder import BuildProgress
from registrations.match_index.format.manifest import IndexManifest

log = get_logger(__name__)
INTERNAL = "internal"  # the reason of an error that is not an EventHubError
ENDED = "ended"  # the reason of a builder that was terminated


class BuildOrder(NamedTuple):
    """The index to build. `full`: from the tables, even if an epoch could be used."""

    database_url: str
    data: Path
    stream_id: int
    full: bool = False


def build(
    order: BuildOrder, progress: Callable[[BuildProgress], None] = lambda progress: None
) -> IndexManifest:
    """Build an index, and record start, progress and end. Raises IndexNotUsed, NotIndexable,
    IndexNotWritten, DatabaseUnavailable.
    """
    url = order.database_url
    with (
        blocking(url, name="index builder") as connection,
        blocking(url, name="index builder") as notes,
    ):
        try:
            state = state_of(connection, order.data, order.stream_id)
            statements.start(notes, order.stream_id, state.ids + state.changed_since)
            with _heartbeats(notes, order.stream_id) as reported:
                manifest = build_stream(
                    connection,
                    order.data,
                    order.stream_id,
                    full=order.full,
                    progress=_both(reported, progress),
                )
        except BaseException as error:
            _note(notes, order.stream_id, error)
            raise
        statements.complete(notes, order.stream_id, manifest.ids)
        return manifest


@contextmanager
def _heartbeats(
    notes: statements.Connection, stream_id: int
) -> Iterator[Callable[[BuildProgress], None]]:
    """Send a heartbeat with the progress each second from a thread, because one stage of a large
    index may take minutes. The thread uses the connection until the block ends.
    """
    latest: list[BuildProgress] = []
    over = threading.Event()

    def send() -> None:
        try:
            while not over.wait(limits.INDEX_BUILD_HEARTBEAT_S):
                stage, done = latest[-1] if latest else ("started", 0)
                statements.heartbeat(notes, stream_id, stage, done)
        except psycopg.Error as error:
            log.warning("index_build_heartbeat_failed", stream=stream_id, detail=str(error))

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    try:
        yield lambda progress: latest.__setitem__(slice(None), [progress])
    finally:
        over.set()
        thread.join()


def _both(*listeners: Callable[[BuildProgress], None]) -> Callable[[BuildProgress], None]:
    def notify(progress: BuildProgress) -> None:
        for one in listeners:
            one(progress)

    return notify


def _note(notes: statements.Connection, stream_id: int, error: BaseException) -> None:
    """Record why it failed; only log it if the database fails too."""
    reason, detail = _reason(error)
    try:
        statements.fail(notes, stream_id, reason, detail)
    except psycopg.Error:
        log.warning("index_build_failure_not_recorded", stream=stream_id, reason=reason)


def _reason(error: BaseException) -> tuple[str, str]:
    """Return an error's code and a message for every manager of the stream, without details of this
    machine or the database. The error itself has those.
    """
    if isinstance(error, EventHubError):
        return error.code, type(error)().message
    if isinstance(error, Exception):
        return INTERNAL, EventHubError().message
    return ENDED, "The builder was terminated."
