"""How the match indexes of streams stand, as the command and the API show it. Sql module."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from eventhub import limits
from eventhub.event.json_codec import time_text
from registrations.building import rows
from registrations.building.rows import Build, Connection, Stream
from registrations.index.place import indexed
from registrations.index.state import IndexState, due_streams, state_of
from registrations.match.matching import AUTO, INDEXED


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


def standing_json(standing: Standing) -> dict[str, Any]:
    state, build = standing.state, standing.build
    return {
        "stream": standing.stream.name,
        "matching": standing.stream.matching,
        "index": _index_json(state) if state.epoch else None,
        "changed_since": state.changed_since,
        "due": state.due,
        "why": standing.idle or state.why,
        "buildable": not standing.idle,
        "builds_from": limits.INDEX_AUTO_MIN,
        "build": None if build is None else _build_json(build),
    }


def _index_json(state: IndexState) -> dict[str, Any]:
    return {
        "epoch": state.epoch,
        "registrations": state.ids,
        "entries": state.entries,
        "bytes": state.bytes,
        "built_at": _time(state.built_at),
        "built_through_sequence": state.built_through_sequence,
    }


def _build_json(build: Build) -> dict[str, Any]:
    return {
        "state": build.state,
        "requested_at": _time(build.requested_at_us),
        "started_at": _time(build.started_at_us),
        "ended_at": _time(build.ended_at_us),
        "stage": build.stage,
        "done": build.done,
        "expected": build.expected,
        "reason": build.reason,
        "detail": build.detail,
    }


def _time(time_us: int | None) -> str | None:
    return None if time_us is None else time_text(time_us)
