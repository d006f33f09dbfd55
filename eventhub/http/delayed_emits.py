"""Emitted events that are appended later, when they are due. Plain module.

They are stored as timers by `Log.append_delayed`, in one transaction with the other events of their
request.
"""

from collections.abc import Mapping, Sequence

from eventhub.access.principal import Principal
from eventhub.base import limits, metrics
from eventhub.base.clock import SystemClock
from eventhub.base.errors import EventHubError, EventTooLarge, InvalidField
from eventhub.event.delays import take_due_us
from eventhub.event.inbound import EventIn
from eventhub.eventlog.delayed import DelayedDraft, MixedRequest
from eventhub.eventlog.drafts import Draft
from eventhub.eventlog.log import Log
from eventhub.eventlog.stored import StreamInfo
from eventhub.http.emitted import Emitted, emitted


def due_of(info: StreamInfo, event: EventIn) -> int:
    """Return the time at which an event with `deliver_at` or `delay_ms` is due, in microseconds
    since 1970, and clear them. Raises InvalidField.
    """
    field = "delay_ms" if event.deliver_at is None else "deliver_at"
    if info.durability == "transient":
        message = "A transient stream is in memory only, so no event can wait for it."
        raise InvalidField(message, field=field)
    return take_due_us(event, SystemClock().now_us())


async def append_delayed(
    log: Log,
    principal: Principal,
    info: StreamInfo,
    drafts: Sequence[Draft],
    due: Mapping[int, int],
) -> Emitted:
    """Store the drafts of a request of which some are delayed: `due` is their time in microseconds,
    by index. Those that are due already are appended at once. Raises EventTooLarge, and what
    Log.append and Log.append_delayed raise.
    """
    now_us = SystemClock().now_us()
    at_once: list[int] = []
    delayed: list[DelayedDraft] = []
    for index, draft in enumerate(drafts):
        if due.get(index, 0) <= now_us:
            at_once.append(index)
        else:
            _require_small(index, draft)
            delayed.append(DelayedDraft(index, draft, due[index]))
    if not delayed:
        return emitted(info.name, await log.append([*drafts], info, principal.queue_owner))
    now = [drafts[index] for index in at_once]
    try:
        stored = await log.append_delayed(
            MixedRequest(principal.zone_id, principal.client_id, now, delayed)
        )
    except EventHubError as error:
        if error.index is not None:
            error.index = at_once[error.index]
        raise
    metrics.DELAYED.inc(len(stored.waiting))
    metrics.DUPLICATES.inc(len(stored.before))
    found = emitted(info.name, stored.appended)
    duplicates = [(at_once[at], segment, sequence) for at, segment, sequence in found.duplicates]
    duplicates += stored.before
    return found._replace(duplicates=sorted(duplicates), delayed=tuple(stored.waiting))


def _require_small(index: int, draft: Draft) -> None:
    size, size_max = len(draft.payload), limits.TIMER_EVENT_BYTES_MAX
    if size > size_max:
        message = f"A delayed event has at most {size_max:,} bytes as stored."
        raise EventTooLarge(message, index=index, bytes=size, bytes_max=size_max)
