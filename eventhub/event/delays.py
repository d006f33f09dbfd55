"""When a delayed event is due: `deliver_at` and `delay_ms` of an emit. Plain module.

An event with one of them is appended when it is due, and has its sequence then.
"""

from datetime import UTC, datetime, timedelta

from eventhub.base import errors, limits
from eventhub.event.inbound import EventIn, microseconds

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def take_due_us(event: EventIn, now_us: int) -> int:
    """Return the time at which an event is due, in microseconds since 1970: `deliver_at`, or
    `delay_ms` after now. Clear both fields, which are not stored, and count `expires_in_ms` from
    that time on. Raises InvalidField.
    """
    if event.deliver_at is None:
        due_us = now_us + (event.delay_ms or 0) * 1_000
    elif event.delay_ms is not None:
        raise errors.InvalidField("Give `deliver_at` or `delay_ms`, not both.", field="delay_ms")
    else:
        due_us = microseconds(event.deliver_at, "deliver_at")
        _require_near(due_us, now_us)
    if event.expires_in_ms is not None and event.expires_at is None:
        lifetime = timedelta(microseconds=due_us, milliseconds=event.expires_in_ms)
        event.expires_at, event.expires_in_ms = _EPOCH + lifetime, None
    elif event.expires_at is not None and microseconds(event.expires_at, "expires_at") <= due_us:
        message = "The event would have expired before it is due."
        raise errors.InvalidField(message, field="expires_at")
    event.deliver_at = event.delay_ms = None
    return due_us


def _require_near(due_us: int, now_us: int) -> None:
    if due_us < now_us - limits.DELAY_PAST_S_MAX * 1_000_000:
        message = (
            f"The time is more than {limits.DELAY_PAST_S_MAX // 3_600} hours ago; emit the event"
            " without `deliver_at` to store it now."
        )
        raise errors.InvalidField(message, field="deliver_at")
    if due_us > now_us + limits.TIMER_AHEAD_S_MAX * 1_000_000:
        raise errors.InvalidField("The time is more than ten years ahead.", field="deliver_at")
