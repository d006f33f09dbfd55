"""The preview of a replay run: what the run would send, exact up to a bound, and estimated beyond
it. It plans with the same code as the run. SQL module.
"""

from collections import deque
from typing import Any, NamedTuple

from delivery.recovery.log_pages import LogPages, ReplayTarget
from delivery.recovery.runs import FailedParams, FailedPosition, LogParams, LogPosition
from delivery.recovery.steps import FailedDelivery, read_failed
from eventhub.base import limits
from eventhub.base.clock import Clock
from eventhub.event.json_codec import time_text
from eventhub.eventlog.stored import ReadsArchive, StoredEvent
from eventhub.postgresql.connections import Connection

_ALL = (1 << 63) - 1


class PreviewRequest(NamedTuple):
    """A run that is not created: its target, what it replays, its rate and bounds."""

    target: ReplayTarget
    params: LogParams | FailedParams
    rate: int
    deliveries_max: int | None = None
    force: bool = False


class PreviewSample(NamedTuple):
    """An event that would be sent."""

    stream: str
    segment: str
    sequence: int
    appended_at: str | None


class Preview(NamedTuple):
    """What a run would do now. `exact`: everything was examined; else `deliveries` is estimated.
    `total`: the events or deliveries to examine, if known. `duration_s`: at the run's rate.
    """

    exact: bool
    total: int | None
    examined: int
    matched: int
    deliveries: int
    skipped: int
    missing: int
    duration_s: float
    first: list[PreviewSample]
    last: list[PreviewSample]


async def preview(
    connection: Connection, archive: ReadsArchive | None, clock: Clock, request: PreviewRequest
) -> Preview:
    """Return the preview. Raises the errors of reading the log."""
    if isinstance(request.params, FailedParams):
        return await _of_failed(connection, request, request.params)
    pages = LogPages(connection, archive, clock, request.target, request.params)
    return await _LogPreview(pages, clock, request).run()


class _LogPreview:
    """The preview of a run over the log."""

    def __init__(self, pages: LogPages, clock: Clock, request: PreviewRequest) -> None:
        self._pages = pages
        self._clock = clock
        self._request = request
        self._params: Any = request.params
        self._first: list[PreviewSample] = []
        self._last: deque[PreviewSample] = deque(maxlen=limits.REPLAY_PREVIEW_SAMPLES)
        self._reached = pages.start()
        self._examined = self._matched = self._sent = self._skipped = self._missing = 0

    async def run(self) -> Preview:
        exact = await self._examine()
        sent = self._sent
        total = self._params.events
        if not exact:
            left = total - self._examined - self._missing
            sent += round(self._sent / max(self._examined, 1) * left)
            await self._examine_tail()
        return Preview(
            exact,
            total,
            self._examined,
            self._matched,
            _bounded(sent, self._request.deliveries_max),
            self._skipped,
            self._missing,
            _duration_s(sent, self._request),
            self._first,
            list(self._last),
        )

    async def _examine(self) -> bool:
        """Examine the events from the first one on; return whether all of them were."""
        until_s = self._clock.monotonic_s() + limits.REPLAY_PREVIEW_S_MAX
        most = self._request.deliveries_max
        while self._examined < limits.REPLAY_PREVIEW_EVENTS_MAX:
            if self._clock.monotonic_s() >= until_s:
                return False
            page = await self._pages.next(
                self._reached,
                room=_ALL if most is None else most - self._sent,
                force=self._request.force,
                events_max=limits.REPLAY_STEP_EVENTS_MAX,
                through=_ALL,
            )
            plan = page.plan
            self._examined += plan.examined
            self._matched += plan.matched
            self._skipped += plan.skipped
            self._missing += page.missing
            self._sent += len(plan.events)
            self._show(self._reached.range, plan.events)
            done = most is not None and self._sent >= most
            if page.at_end or done:
                return True
            if (
                page.position == self._reached
            ):  # a gap notice is pending, and the run would wait for it
                return False
            self._reached = page.position
        return False

    async def _examine_tail(self) -> None:
        """Examine the last events of the last stream that were not examined, for the last
        samples.
        """
        number = len(self._params.ranges) - 1
        of_stream = self._params.ranges[number]
        after = max(of_stream.last - limits.REPLAY_PREVIEW_TAIL_EVENTS, of_stream.after)
        if self._reached.range == number:
            after = max(after, self._reached.sequence)
        segment = await self._pages.segment_at(of_stream.stream_id, after + 1)
        if segment is None:
            return
        page = await self._pages.next(
            LogPosition(number, segment, after),
            room=_ALL,
            force=self._request.force,
            events_max=limits.REPLAY_PREVIEW_TAIL_EVENTS,
            through=_ALL,
        )
        self._show(number, page.plan.events)

    def _show(self, number: int, events: list[StoredEvent]) -> None:
        stream = self._params.ranges[number].stream
        for stored in events:
            sample = PreviewSample(
                stream, stored.segment, stored.sequence, time_text(stored.appended_at_us)
            )
            if len(self._first) < limits.REPLAY_PREVIEW_SAMPLES:
                self._first.append(sample)
            else:
                self._last.append(sample)


async def _of_failed(
    connection: Connection, request: PreviewRequest, params: FailedParams
) -> Preview:
    """Return the preview of a run over deliveries; counted up to the bound."""
    most = limits.REPLAY_PREVIEW_EVENTS_MAX
    rows = await read_failed(connection, request.target, params, FailedPosition(), most)
    present = [row for row in rows if not row.is_missing]
    sent = present[: request.deliveries_max]
    shown = limits.REPLAY_PREVIEW_SAMPLES
    return Preview(
        len(rows) < most,
        len(rows) if len(rows) < most else None,
        len(rows),
        len(rows),
        len(sent),
        0,
        len(rows) - len(present),
        _duration_s(len(sent), request),
        [*map(_sample, sent[:shown])],
        [*map(_sample, sent[shown:][-shown:])],
    )


def _sample(row: FailedDelivery) -> PreviewSample:
    return PreviewSample(row.stream, row.segment, row.sequence, None)


def _bounded(sent: int, most: int | None) -> int:
    return sent if most is None else min(sent, most)


def _duration_s(sent: int, request: PreviewRequest) -> float:
    return round(_bounded(sent, request.deliveries_max) / request.rate, 3)
