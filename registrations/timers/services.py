"""Creates, suspends, resumes and deletes timers; each change is announced in its transaction.
Django module.
"""

from typing import Any

from django.db import transaction
from django.db.models import F

from eventhub.access.principal import Actor
from eventhub.access.rate_limits import spend_now
from eventhub.api.announcements import announce, raw_connection
from eventhub.base import limits
from eventhub.base.clock import SystemClock
from eventhub.base.errors import EventHubError, EventTooLarge, InvalidField
from eventhub.event.inbound import from_objects
from eventhub.eventlog.streams import StreamRow
from eventhub.streams.checked_event import checked_draft, stream_to_emit
from registrations import statements
from registrations.errors import UnknownRegistration
from registrations.quotas import require_room
from registrations.scope import Owner
from registrations.services import lock_owner, require_listen_to_all
from registrations.timers import selectors
from registrations.timers.ending import SQL, count_ended
from registrations.timers.errors import TimerEnded, TimerExists
from registrations.timers.events import utc_text
from registrations.timers.models import Timer, TimerCount
from registrations.timers.schedule import first_time, moment, schedule_of


def create_timer(*, actor: Actor, owner: Owner, fields: dict[str, Any]) -> Timer:
    """Create a timer of the client. Raises TimerExists, LimitReached, UnknownRegistration, and what
    the emit route raises about the stream and the event.
    """
    stream = _stream(actor, fields["stream"])
    now = moment(SystemClock().now_us())
    schedule = schedule_of(fields, now)
    first = first_time(schedule, now)
    if first is None:
        raise InvalidField("The timer would never fire: no time is before its end.", field="end")
    payload = _payload(actor, stream, owner, fields.get("event"))
    _admit(actor)
    suspended = fields.get("suspended", False)
    with transaction.atomic():
        lock_owner(owner.id)
        registration = fields.get("registration")
        if registration is not None:
            _require_registration(actor, owner, registration, stream)
        _refuse_taken(owner, registration, fields["handle"])
        _require_room(actor, owner)
        timer = Timer.objects.create(
            zone_id=actor.zone_id,
            client_id=owner.id,
            registration_id=registration,
            stream_id=stream.id,
            handle=fields["handle"],
            payload=payload,
            suspended=suspended,
            next_at=first,
            due_at=None if suspended else first,
            created_at=now,
            **schedule._asdict(),
        )
        counts = TimerCount.objects.filter(client_id=owner.id)
        if not counts.update(timers=F("timers") + 1):
            TimerCount.objects.create(client_id=owner.id, zone_id=actor.zone_id, timers=1)
        timer = selectors.timers_of(actor=actor).get(pk=timer.pk)
        _announce(actor, "created", timer)
    return timer


def change_timer(*, actor: Actor, timer: Timer, suspended: bool | None = None) -> Timer:
    """Suspend or resume a timer, whose row is locked. Repeating it changes nothing. Raises
    TimerEnded if no time is left.
    """
    if suspended in (None, timer.suspended):
        return timer
    timer.suspended, timer.due_at = suspended, None
    if not suspended:
        now = moment(SystemClock().now_us())
        if timer.at is None and timer.next_at < now:
            following = selectors.following(timer, now)
            if following is None:
                raise TimerEnded(field="suspended")
            timer.next_at = following
        timer.due_at = max(timer.next_at, now)
    timer.save(update_fields=["suspended", "next_at", "due_at"])
    _announce(actor, "changed", timer)
    return timer


def delete_timer(*, actor: Actor, timer: Timer) -> None:
    """Delete a timer, whose row is locked."""
    Timer.objects.filter(pk=timer.pk).delete()
    count_ended(raw_connection(), [timer.client_id])
    _announce(actor, "deleted", timer)


def _stream(actor: Actor, name: str) -> StreamRow:
    """Return the stream, on which the actor may emit. Raises what `stream_to_emit` raises, and
    InvalidField for a transient one.
    """
    found = stream_to_emit(actor, name)
    if found.policy.durability == "transient":
        message = "A transient stream is in memory only, so no timer can be on it."
        raise InvalidField(message, field="stream")
    return found


def _payload(actor: Actor, stream: StreamRow, owner: Owner, given: Any) -> bytes | None:
    """Return the stored bytes of the event in a request; None if there is none."""
    if given is None:
        return None
    try:
        [event] = from_objects([given])
        if event.id is not None:
            message = "Omit `id`: a timer is known by its handle, and fires once for each time."
            raise InvalidField(message, field="id")
        payload = checked_draft(actor=actor, row=stream, event=event, client=owner.name).payload
        if len(payload) > limits.TIMER_EVENT_BYTES_MAX:
            raise EventTooLarge(bytes=len(payload), bytes_max=limits.TIMER_EVENT_BYTES_MAX)
        return payload
    except EventHubError as error:
        error.index = None
        error.field = "event" if error.field is None else f"event.{error.field}"
        raise


def _admit(actor: Actor) -> None:
    """Count an event of the actor's client. Raises RateLimited, ZoneStorageFull."""
    if actor.principal is not None and not actor.principal.is_operator:
        actor.principal.require_storage()
        spend_now(raw_connection(), actor.principal)


def _require_registration(actor: Actor, owner: Owner, id: int, stream: StreamRow) -> None:
    """Lock a live registration of the client on the stream. Raises UnknownRegistration, Forbidden,
    InvalidField.
    """
    connection = raw_connection()
    known = statements.owner_of(connection, actor.zone_id, owner.id, id) is not None
    found = statements.lock_registrations(connection, [id]) if known else []
    if not found:
        raise UnknownRegistration(field="registration")
    require_listen_to_all(actor, found[0], statements.stream_names(connection, found[0].streams))
    if stream.id not in found[0].streams:
        message = "The registration does not name this stream, so it would match no event of it."
        raise InvalidField(message, field="stream")


def _refuse_taken(owner: Owner, registration: int | None, handle: str) -> None:
    """Raise TimerExists; the locked client lets nobody create another one meanwhile."""
    named = {"client_id": owner.id, "registration_id": None}
    if registration is not None:
        named = {"registration_id": registration}
    if Timer.objects.filter(handle=handle, **named).exists():
        raise TimerExists(field="handle")


def _require_room(actor: Actor, owner: Owner) -> None:
    """Raise LimitReached unless the locked client may have one more timer."""
    own = TimerCount.objects.filter(client_id=owner.id).first()
    require_room("timers", actor.zone_id, owner.id, used=own.timers if own else 0)


def _announce(actor: Actor, change: str, timer: Timer) -> None:
    """Announce the change; last in the transaction. The commit wakes the part that fires timers."""
    attributes = {
        "client": timer.client_name,
        "timer": timer.pk,
        "handle": timer.handle,
        "registration": timer.registration_id,
        "stream": timer.stream_name,
        "suspended": timer.suspended,
        "next_at": utc_text(timer.next_at),
    }
    announce(zone=actor.zone, type=f"timer.{change}", attributes=attributes)
    if timer.due_at is not None and change != "deleted":
        # robust: the change is committed; the firing part also looks by itself
        transaction.on_commit(lambda: raw_connection().execute(SQL["notify"]), robust=True)
