"""The facts of an epoch in the manifest of a stream's match index, and whether the epoch may be
used with a state of the database. Plain module.

An epoch is built from one snapshot, which saw all transactions before `xmin`. Changes of
transactions from `xmin` on count as unseen; that is never too few.
"""

from typing import Any, NamedTuple

from eventhub.eventlog.system import SYSTEM_STREAM_ID
from registrations.match_index.format.manifest import IndexManifest, are_counts
from registrations.matching.strategies import INDEXED

FORM = 1  # the version of the columns and facts


class EpochFacts(NamedTuple):
    """The snapshot from which an epoch of a stream was built."""

    stream: int
    history: str  # of the database; a restore starts another one
    after: int  # versions that ended at or before this sequence of the stream are omitted
    xmin: int  # the oldest transaction that was still open in the snapshot
    refused: tuple[int, ...] = ()  # versions that no index can store, ascending

    def stored(self) -> dict[str, Any]:
        return {"form": FORM, **self._asdict()}


class StreamSnapshot(NamedTuple):
    """A stream in one snapshot of the database."""

    system: int  # the head of `system`
    history: str
    xmin: int
    strategy: str
    durability: str
    after: int  # the stream is matched for callbacks up to here; 0: not yet
    purged: int = 0  # the last transaction that ended a version deleted since; 0: none


def facts_of(manifest: IndexManifest) -> EpochFacts | None:
    """Return the facts of an epoch; None if the manifest has another form or purpose."""
    stored = dict(manifest.facts)
    try:
        if stored.pop("form") != FORM:
            return None
        facts = EpochFacts(**{**stored, "refused": tuple(stored["refused"])})
    except (KeyError, TypeError):
        return None
    numbers = (facts.stream, facts.after, facts.xmin, *facts.refused)
    return facts if isinstance(facts.history, str) and are_counts(numbers) else None


def refusal(manifest: IndexManifest, stream_id: int, moment: StreamSnapshot) -> str | None:
    """Return why an epoch must not be used: `form`, `stream`, `history`, `future`, `purged`; None
    if it may be used.
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


def uses_index(stream_id: int, moment: StreamSnapshot) -> bool:
    """Return whether a stream uses a match index. The few registrations on `system` are matched in
    memory, and a transient stream has no callbacks.
    """
    forwarded = stream_id != SYSTEM_STREAM_ID and moment.durability != "transient"
    return forwarded and moment.strategy in INDEXED
