"""What the manifest of a stream's match index says beside what is in it, and whether it may be used
at a moment of the database. Plain module.

An epoch is of one snapshot. `xmin` says what that snapshot did not see: only what changed in
transactions from there on. That is more than it did not see, and never less.
"""

from typing import Any, NamedTuple

from eventhub.eventlog.system import SYSTEM_STREAM_ID
from registrations.match_index.format.manifest import Manifest, are_counts
from registrations.matching.stream_matcher import INDEXED

FORM = 1  # of the columns and facts


class Facts(NamedTuple):
    """What an epoch of a stream was built from."""

    stream: int
    history: str  # of the database: another one after a restore
    after: int  # versions that ended at or before this sequence of the stream are left out
    xmin: int  # the oldest transaction that the snapshot did not see the end of
    refused: tuple[int, ...] = ()  # versions that no index can hold, ascending

    def stored(self) -> dict[str, Any]:
        return {"form": FORM, **self._asdict()}


class Moment(NamedTuple):
    """A stream in one snapshot of the database."""

    system: int  # the head of `system`
    history: str
    xmin: int
    strategy: str
    durability: str
    after: int  # the stream is matched for callbacks up to here; 0: not at all
    purged: int = 0  # the last transaction that ended a version which was deleted since; 0: none


def facts_of(manifest: Manifest) -> Facts | None:
    """None if the manifest is of another form, or was built for something else."""
    stored = dict(manifest.facts)
    try:
        if stored.pop("form") != FORM:
            return None
        facts = Facts(**{**stored, "refused": tuple(stored["refused"])})
    except (KeyError, TypeError):
        return None
    numbers = (facts.stream, facts.after, facts.xmin, *facts.refused)
    return facts if isinstance(facts.history, str) and are_counts(numbers) else None


def refusal(manifest: Manifest, stream_id: int, moment: Moment) -> str | None:
    """Why an epoch must not be used: `form`, `stream`, `history`, `future`, `purged`; None if
    it may.
    """
    facts, through = facts_of(manifest), manifest.built_through_sequence
    if facts is None or through is None:
        return "form"
    if facts.stream != stream_id:
        return "stream"
    if facts.history != moment.history:
        return "history"
    if through > moment.system or facts.xmin > moment.xmin:
        return "future"
    if moment.purged >= facts.xmin:
        return "purged"
    return None


def takes_index(stream_id: int, moment: Moment) -> bool:
    """Whether the stream is matched from an index, if there is one. The few registrations on
    `system` are matched in memory, and a transient stream has no callbacks.
    """
    forwarded = stream_id != SYSTEM_STREAM_ID and moment.durability != "transient"
    return forwarded and moment.strategy in INDEXED
