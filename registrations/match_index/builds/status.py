"""The status of match indexes, as the command and the API show it. SQL module."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from eventhub.base import limits
from registrations.match_index.builds import statements
from registrations.match_index.builds.statements import Connection, IndexBuildNote, IndexStream
from registrations.match_index.epochs.folder import indexed
from registrations.match_index.epochs.state import IndexState, due_streams, state_of
from registrations.matching.strategies import AUTO, INDEXED


class IndexStatus(NamedTuple):
    """The state of a stream's match index, and its last build if one is recorded."""

    stream: IndexStream
    state: IndexState
    build: IndexBuildNote | None

    @property
    def refused(self) -> str:
        """Why the stream uses no index, in words; "" if one may be built."""
        name, matching = self.stream.name, self.stream.matching
        if self.stream.zone is None:
            return f"The few registrations on `{name}` are matched in memory, without an index."
        if self.stream.durability == "transient":
            return f"{name} is transient: its events are not delivered to endpoints."
        if matching not in INDEXED:
            return (
                f"Events of {name} are matched by `{matching}`, in memory; only the strategies"
                " `auto` and `index` use an index."
            )
        count = self.state.ids + self.state.changed_since
        if self.state.epoch or count >= limits.INDEX_AUTO_MIN or (matching != AUTO and count):
            return ""
        if not count:
            return f"No registration on {name} has an endpoint, so there is nothing to index."
        return (
            f"{name} has few registrations with an endpoint (versions: {count:,}); they are matched"
            f" in memory. Workers build an index from {limits.INDEX_AUTO_MIN:,} versions on, with"
            " the strategy `index` from the first one on."
        )

    @property
    def idle(self) -> str:
        """Why a build is not needed now, in words; "" if one may be requested."""
        if not self.refused and self.state.epoch and not self.state.changed_since:
            return f"Nothing has changed since the index of {self.stream.name} was built."
        return self.refused

    @property
    def in_use(self) -> IndexState | None:
        """The index, if there is one."""
        return self.state if self.state.epoch else None

    @property
    def why(self) -> str:
        """Why a build is due or not, in words."""
        return self.idle or self.state.why

    @property
    def buildable(self) -> bool:
        return not self.idle

    @property
    def builds_from(self) -> int:
        return limits.INDEX_AUTO_MIN


def index_statuses(
    connection: Connection, data: Path, ids: Iterable[int], *, exact: bool = True
) -> list[IndexStatus]:
    """Return the status of the streams that exist, by zone and name; `exact`: see `state_of`."""
    found = statements.streams(connection, list(ids))
    builds = statements.builds(connection, [stream.id for stream in found])
    return [
        IndexStatus(
            stream, state_of(connection, data, stream.id, exact=exact), builds.get(stream.id)
        )
        for stream in found
    ]


def builds_due(connection: Connection, data: Path) -> list[int]:
    """Return the streams with a requested or due build."""
    return sorted({*statements.requested(connection), *due_streams(connection, data)})


def streams_to_show(connection: Connection, data: Path) -> list[int]:
    """Return the streams that have an index, or whose build is due, requested or failed."""
    return sorted(
        {*indexed(data), *due_streams(connection, data), *statements.open_or_failed(connection)}
    )
