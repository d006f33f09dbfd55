"""The display of a build's progress: one changing line on a terminal, else a line from time to
time. Plain module.
"""

from collections.abc import Callable
from types import TracebackType
from typing import Self

from eventhub.base.clock import Clock
from registrations.match_index.format.builder import READ, BuildProgress

_LINE_S = 5.0  # between two lines of a log, unless a stage ends
_REDRAW_S = 0.1  # on a terminal
_BACK = "\r\x1b[K"  # moves to the beginning of the line and clears it


class ProgressDisplay:
    """A display of progress, to be used as a context manager: `show` displays a builder's progress,
    and the end of the block clears the line.
    """

    def __init__(
        self, name: str, expected: int, clock: Clock, write: Callable[[str], None], terminal: bool
    ) -> None:
        self._name = name
        self._expected = expected
        self._clock = clock
        self._write = write
        self._terminal = terminal
        self._stage = ""
        self._stage_s = clock.monotonic_s()  # when the stage started ...
        self._stage_done = 0  # ... and what was done before
        self._written_s = float("-inf")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._terminal:
            self._write(_BACK)

    def show(self, progress: BuildProgress) -> None:
        now_s = self._clock.monotonic_s()
        new = progress.stage != self._stage
        pause_s = _REDRAW_S if self._terminal else _LINE_S
        if new:
            self._stage, self._stage_s = progress.stage, now_s
            self._stage_done = progress.entries
        if new or now_s - self._written_s >= pause_s:
            line = self._line(progress, now_s)
            self._write(f"{_BACK}{line}" if self._terminal else f"{line}\n")
            self._written_s = now_s

    def _line(self, progress: BuildProgress, now_s: float) -> str:
        """Return the stage, the count, and the rate since the stage started. Only the stage `read`
        has an expected number: of versions; later stages count entries.
        """
        done = progress.entries
        is_share = progress.stage == READ and self._expected >= done
        of = f" of about {self._expected:,}" if is_share else ""
        seconds = now_s - self._stage_s
        rate = f", {(done - self._stage_done) / seconds:,.0f}/s" if seconds > 0 else ""
        count = f" {done:,}{of}{rate}" if done or of else ""
        return f"{self._name}: {progress.stage}{count}"
