"""What became of the patterns of a group: counted, and announced in `system` less and less often.
Plain module.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from delivery.patterns.group_tables import PatternTotals
from delivery.patterns.outputs import (
    Effect,
    FailedRun,
    LostOutput,
    MatchedPattern,
    OutputOwner,
    PatternEnding,
    RunningVersion,
    announcement_of,
)
from eventhub.eventlog.system import Announcement

FAILED = "failed"  # the reason under which failed runs are counted


class StatusRow(NamedTuple):
    """A row of `pattern_statuses`. `state` and `fault` None: as before."""

    pattern: int
    version: int
    state: str | None
    fault: dict[str, Any] | None
    matches: int
    dropped: dict[str, int]


class GroupTotals:
    """The totals of all patterns of a group since their creation. Concurrency: none."""

    def __init__(self, owner: OutputOwner, totals: Mapping[int, PatternTotals]) -> None:
        self._owner = owner
        self._totals = dict(totals)
        self._changed: dict[int, RunningVersion] = {}
        self._endings: dict[int, PatternEnding] = {}
        self._announcements: list[Announcement] = []

    def take(self, effect: Effect) -> None:
        """Count what an output means."""
        match effect:
            case MatchedPattern(running):
                before = self._of(running)
                self._totals[running.pattern] = before._replace(matches=before.matches + 1)
            case LostOutput(running, reason, times):
                self.lose(running, reason, times)
            case FailedRun(running, fault):
                total = self._add(running, FAILED, 1)
                if _is_reported(total - 1, total):
                    self._announce("pattern.failed", running, runs=total, **fault)
            case PatternEnding(running, state, fault):
                self._of(running)
                self._endings[running.pattern] = effect
                self._announce(f"pattern.{state}", running, **(fault or {}))

    def written(self) -> tuple[list[StatusRow], list[Announcement]]:
        """Return what changed since the last call: the rows to write, in order, and the events to
        append.
        """
        rows = [self._row(running) for _, running in sorted(self._changed.items())]
        announcements = self._announcements
        self._changed, self._endings, self._announcements = {}, {}, []
        return rows, announcements

    def announce(self, announcement: Announcement) -> None:
        """Have another event of `system` appended with the next ones."""
        self._announcements.append(announcement)

    def _row(self, running: RunningVersion) -> StatusRow:
        totals = self._totals[running.pattern]
        ending = self._endings.get(running.pattern)
        state, fault = (None, None) if ending is None else (ending.state, ending.fault)
        return StatusRow(
            running.pattern, running.version, state, fault, totals.matches, totals.dropped
        )

    def lose(self, running: RunningVersion, reason: str, count: int) -> None:
        """Count what is discarded."""
        total = self._add(running, reason, count)
        if _is_reported(total - count, total):
            self._announce("pattern.dropped", running, reason=reason, count=total)

    def _add(self, running: RunningVersion, reason: str, count: int) -> int:
        before = self._of(running)
        total = before.dropped.get(reason, 0) + count
        dropped = {**before.dropped, reason: total}
        self._totals[running.pattern] = before._replace(dropped=dropped)
        return total

    def _of(self, running: RunningVersion) -> PatternTotals:
        self._changed[running.pattern] = running
        fresh = PatternTotals(running.pattern, running.version, 0, {})
        return self._totals.setdefault(running.pattern, fresh)

    def _announce(self, type: str, running: RunningVersion, **more: Any) -> None:
        self._announcements.append(announcement_of(type, running, self._owner, **more))


def _is_reported(before: int, total: int) -> bool:
    """Return whether a count is announced: the first time, and whenever it has doubled."""
    return total.bit_length() > before.bit_length()
