"""Reads what one stream's interest is made of, from one snapshot of the tables: all its versions,
or what an epoch of its match index does not have. SQL module.
"""

from collections.abc import Iterable
from typing import NamedTuple

from delivery.forward.indexes import AFTER, OLDER
from eventhub.postgresql.connections import Connection
from registrations.catalog import (
    StoredVersion,
    client_names,
    ended_since,
    moment_of,
    suspensions_of,
    versions_of_stream,
    versions_since,
)
from registrations.match_index.epochs.epoch import Epoch
from registrations.match_index.epochs.facts import Moment, refusal, takes_index
from registrations.matching.stream_matcher import AUTO
from registrations.matching.versions import Suspension, Version

_NOWHERE = Moment(0, "", 0, AUTO, "", 0)  # of a stream that is not there any more


class Piece(NamedTuple):
    """Versions as they are, and the suspensions of their groups."""

    versions: list[Version]
    suspensions: dict[int, tuple[Suspension, ...]]


class Stand(NamedTuple):
    """A stream in one snapshot, and whether an epoch may be used there."""

    moment: Moment
    is_usable: bool
    refused: str | None  # why not, if the epoch is to blame
    names: dict[int, str]  # of the clients in the epoch
    ended: dict[int, int]  # versions that ended since it was built, where they are not loaded


class Loaded(NamedTuple):
    """What a stream's interest is made of; `written` is beside the epoch if that is usable."""

    stand: Stand
    written: list[StoredVersion]  # versions that are not compiled yet
    suspensions: dict[int, tuple[Suspension, ...]]


async def load(connection: Connection, stream_id: int, passed: int, epoch: Epoch | None) -> Loaded:
    """All that can hold for an event after `passed`, in a snapshot that is later than the epoch."""
    async with connection.transaction():
        await connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        stand = await _stand(connection, stream_id, passed, epoch)
        if epoch is not None and stand.is_usable:
            written = await versions_since(connection, epoch.facts)
            groups: Iterable[int | None] = [*epoch.groups, *(one.group for one in written)]
        else:
            written = await versions_of_stream(connection, stream_id, passed)
            groups = [one.group for one in written]
        suspensions = await suspensions_of(connection, groups, stream_id, passed)
        return Loaded(stand, written, suspensions)


async def stand_of(
    connection: Connection, stream_id: int, passed: int, epoch: Epoch, present: Epoch | None
) -> Stand:
    """The same without versions that begin: whether an epoch may take the place of the present one,
    and what ended since.
    """
    async with connection.transaction():
        await connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        stand = await _stand(connection, stream_id, passed, epoch)
        if not stand.is_usable:
            return stand
        if present is not None and _through(epoch) < _through(present):
            return stand._replace(is_usable=False, refused=OLDER)
        return stand._replace(ended=await ended_since(connection, epoch.facts))


async def _stand(connection: Connection, stream_id: int, passed: int, epoch: Epoch | None) -> Stand:
    moment = await moment_of(connection, stream_id) or _NOWHERE
    if epoch is None or not takes_index(stream_id, moment):
        return Stand(moment, False, None, {}, {})
    refused = refusal(epoch.manifest, stream_id, moment)
    if refused is None and epoch.facts.after > passed:
        refused = AFTER
    if refused is not None:
        return Stand(moment, False, refused, {}, {})
    return Stand(moment, True, None, await client_names(connection, epoch.clients), {})


def _through(epoch: Epoch) -> int:
    return epoch.manifest.built_through_sequence or 0
