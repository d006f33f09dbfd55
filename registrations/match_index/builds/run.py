"""Builds one stream's match index and says how far it is, to whoever asks for it and in the notes
that the console shows. SQL module.
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
from registrations.match_index.builds import rows
from registrations.match_index.epochs.build import build_stream
from registrations.match_index.epochs.state import state_of
from registrations.match_index.format.builder import Progress
from registrations.match_index.format.manifest import Manifest

log = get_logger(__name__)
INTERNAL = "internal"  # the reason of what is no error of the hub's own tree
ENDED = "ended"  # of one that was told to end


class Order(NamedTuple):
    """Which index is built, and where. `full`: from the tables, also if an epoch could be used."""

    database_url: str
    data: Path
    stream_id: int
    full: bool = False


def build(order: Order, progress: Callable[[Progress], None] = lambda progress: None) -> Manifest:
    """Build, and note begin, progress and end. Raises IndexNotTaken, NotIndexable,
    IndexNotWritten, DatabaseUnavailable.
    """
    url = order.database_url
    with (
        blocking(url, name="index builder") as connection,
        blocking(url, name="index builder") as notes,
    ):
        try:
            state = state_of(connection, order.data, order.stream_id)
            rows.begin(notes, order.stream_id, state.ids + state.changed_since)
            with _heard(notes, order.stream_id) as told:
                manifest = build_stream(
                    connection,
                    order.data,
                    order.stream_id,
                    full=order.full,
                    progress=_both(told, progress),
                )
        except BaseException as error:
            _note(notes, order.stream_id, error)
            raise
        rows.complete(notes, order.stream_id, manifest.ids)
        return manifest


@contextmanager
def _heard(notes: rows.Connection, stream_id: int) -> Iterator[Callable[[Progress], None]]:
    """A thread notes each second how far it is: one stage of a large index may take minutes, and
    is not to look like a builder that has gone. The connection is the thread's for the block.
    """
    latest: list[Progress] = []
    over = threading.Event()

    def say() -> None:
        while not over.wait(limits.INDEX_BUILD_HEARTBEAT_S):
            stage, done = latest[-1] if latest else ("begun", 0)
            rows.hear(notes, stream_id, stage, done)

    def keep_saying() -> None:
        try:
            say()
        except psycopg.Error as error:
            log.warning("index_build_unheard", stream=stream_id, detail=str(error))

    thread = threading.Thread(target=keep_saying, daemon=True)
    thread.start()
    try:
        yield lambda progress: latest.__setitem__(slice(None), [progress])
    finally:
        over.set()
        thread.join()


def _both(*told: Callable[[Progress], None]) -> Callable[[Progress], None]:
    def tell(progress: Progress) -> None:
        for one in told:
            one(progress)

    return tell


def _note(notes: rows.Connection, stream_id: int, error: BaseException) -> None:
    """Why it failed; without a word if the database is what fails."""
    reason, detail = _reason(error)
    try:
        rows.fail(notes, stream_id, reason, detail)
    except psycopg.Error:
        log.warning("index_build_unnoted", stream=stream_id, reason=reason)


def _reason(error: BaseException) -> tuple[str, str]:
    """An error's code, and words that every manager of the stream may read: nothing of this machine
    or of the database is in them. Who catches the error has its own words.
    """
    if isinstance(error, EventHubError):
        return error.code, type(error)().message
    if isinstance(error, Exception):
        return INTERNAL, EventHubError().message
    return ENDED, "The builder was told to end."
