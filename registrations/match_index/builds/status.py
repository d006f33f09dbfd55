"""How the match indexes of streams stand, as the command and the API show it. SQL module."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from eventhub.base import limits
from registrations.match_index.builds import rows
from registrations.match_index.builds.rows import Build, Connection, Stream
from registrations.match_index.epochs.folder import indexed
from registrations.match_index.epochs.state import IndexState, due_streams, state_of
from registrations.matching.stream_matcher import AUTO, INDEXED


class Standing(NamedTuple):
    """A stream's match index, and its last build if one is known of."""

    stream: Stream
    state: IndexState
    build: Build | None

    @property
    def refused(self) -> str:
        """Why an index would be of no use, in words; "" if one may be built."""
        name, matching = self.stream.name, self.stream.matching
        if self.stream.zone is None:
            return f"The few registrations of `{name}` are matched in memory; it has no index."
        if self.stream.durability == "transient":
            return f"{name} is transient: nothing of it is delivered to endpoints."
        if matching not in INDEXED:
            return (
                f"Events of {name} are matched by `{matching}`, in memory; indexes are for the"
                " strategies `auto` and `index`."
            )
        count = self.state.ids + self.state.changed_since
        if self.state.epoch or count >= limits.INDEX_AUTO_MIN or (matching != AUTO and count):
            return ""
        if not count:
            return f"No registration on {name} has an endpoint, so there is nothing to index."
        return (
            f"{name} has few registrations with an endpoint (versions: {count:,}); they are matched"
            f" in memory. From {limits.INDEX_AUTO_MIN:,} versions on an index is built by itself,"
            " with the strategy `index` from the first on."
        )

    @property
    def idle(self) -> str:
        """Why nobody needs to ask for a build now, in words; "" if one may be asked for."""
        if not self.refused and self.state.epoch and not self.state.changed_since:
            return f"Nothing has changed since the index of {self.stream.name} was built."
        return self.refused

    @property
    def in_force(self) -> IndexState | None:
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


def standings(
    connection: Connection, data: Path, ids: Iterable[int], *, exact: bool = True
) -> list[Standing]:
    """Of those of the streams that there are, by zone and name; `exact`: see `state_of`."""
    found = rows.streams(connection, list(ids))
    builds = rows.builds(connection, [stream.id for stream in found])
    return [
        Standing(stream, state_of(connection, data, stream.id, exact=exact), builds.get(stream.id))
        for stream in found
    ]


def wanted(connection: Connection, data: Path) -> list[int]:
    """The streams whose index is asked for, or due."""
    return sorted({*rows.asked(connection), *due_streams(connection, data)})


def concerned(connection: Connection, data: Path) -> list[int]:
    """The streams that have an index, are due for one, or whose build is waited for or failed."""
    return sorted({*indexed(data), *due_streams(connection, data), *rows.noted(connection)})
