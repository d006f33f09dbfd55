"""Reads the callback interest of one stream from one snapshot of the tables: all its versions, or
those that an epoch of its match index does not have. SQL module.
"""

from collections.abc import Iterable
from typing import NamedTuple

from delivery.forward.indexes import AFTER, OLDER
from eventhub.postgresql.connections import Connection
from registrations.catalog import (
    StoredVersion,
    client_names,
    ended_since,
    stream_snapshot,
    suspensions_of,
    versions_of_stream,
    versions_since,
)
from registrations.match_index.epochs.epoch import Epoch
from registrations.match_index.epochs.facts import StreamSnapshot, refusal, uses_index
from registrations.matching.strategies import AUTO
from registrations.matching.versions import StreamVersion, SuspensionSpan

_NO_STREAM = StreamSnapshot(0, "", 0, AUTO, "", 0)  # of a deleted stream


class VersionChanges(NamedTuple):
    """Versions in their present form, and the suspensions of their groups."""

    versions: list[StreamVersion]
    suspensions: dict[int, tuple[SuspensionSpan, ...]]


class EpochCheck(NamedTuple):
    """The state of a stream in one snapshot, and whether an epoch may be used for it."""

    moment: StreamSnapshot
    is_usable: bool
    refused: str | None  # why not, if the epoch is the reason
    names: dict[int, str]  # of the clients in the epoch
    ended: dict[int, int]  # versions that ended since it was built, unless they are loaded


class LoadedInterest(NamedTuple):
    """The content of a stream's interest; with a usable epoch, `written` is what the epoch
    lacks.
    """

    check: EpochCheck
    written: list[StoredVersion]  # versions that are not compiled yet
    suspensions: dict[int, tuple[SuspensionSpan, ...]]


async def load(
    connection: Connection, stream_id: int, passed: int, epoch: Epoch | None
) -> LoadedInterest:
    """Return what can be in force after `passed`, from a snapshot later than the epoch."""
    async with connection.transaction():
        await connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        check = await _check(connection, stream_id, passed, epoch)
        if epoch is not None and check.is_usable:
            written = await versions_since(connection, epoch.facts)
            groups: Iterable[int | None] = [*epoch.groups, *(one.group for one in written)]
        else:
            written = await versions_of_stream(connection, stream_id, passed)
            groups = [one.group for one in written]
        suspensions = await suspensions_of(connection, groups, stream_id, passed)
        return LoadedInterest(check, written, suspensions)


async def check_epoch(
    connection: Connection, stream_id: int, passed: int, epoch: Epoch, present: Epoch | None
) -> EpochCheck:
    """Return whether an epoch may replace the present one, and the versions that ended since it was
    built; versions that start later are not read.
    """
    async with connection.transaction():
        await connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        check = await _check(connection, stream_id, passed, epoch)
        if not check.is_usable:
            return check
        if present is not None and _through(epoch) < _through(present):
            return check._replace(is_usable=False, refused=OLDER)
        return check._replace(ended=await ended_since(connection, epoch.facts))


async def _check(
    connection: Connection, stream_id: int, passed: int, epoch: Epoch | None
) -> EpochCheck:
    moment = await stream_snapshot(connection, stream_id) or _NO_STREAM
    if epoch is None or not uses_index(stream_id, moment):
        return EpochCheck(moment, False, None, {}, {})
    refused = refusal(epoch.manifest, stream_id, moment)
    if refused is None and epoch.facts.after > passed:
        refused = AFTER
    if refused is not None:
        return EpochCheck(moment, False, refused, {}, {})
    return EpochCheck(moment, True, None, await client_names(connection, epoch.clients), {})


def _through(epoch: Epoch) -> int:
    return epoch.manifest.built_through_sequence or 0
