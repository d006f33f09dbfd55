"""Sends a delivery again, or sets it aside, by request. Each change is announced in its own
transaction. Django module.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from django.db import transaction

from delivery import selectors
from delivery.callbacks.heartbeat import SQL as WORKERS_SQL
from delivery.errors import DeliveryInProgress, DeliveryState, UnknownDelivery
from delivery.lane_marks import FILLED
from delivery.models import Delivery
from delivery.recovery.actions import RESEND, Action
from eventhub.access.principal import Actor
from eventhub.api.announcements import announce, raw_connection
from eventhub.base import limits
from eventhub.postgresql import queries
from eventhub.postgresql.rows import cursor_of
from registrations.errors import UnknownEndpoint

SQL = queries.load("delivery/sql/recovery.sql", filled=FILLED)
_KEY = ("partition_id", "endpoint_id", "segment_id", "sequence")


class ResendOptions(NamedTuple):
    """`force`: also send a delivery that was delivered or whose event has expired, and end a pause
    of the endpoint. `new_id`: send it under a new `webhook-id`.
    """

    force: bool = False
    new_id: bool = False


class _Locked(NamedTuple):
    """A delivery as locked. `is_posted`: a worker holds a claim of it."""

    state: str
    is_posted: bool


def resend(*, actor: Actor, key: Sequence[int], options: ResendOptions) -> Delivery:
    """Make a delivery pending again, due at once.

    Raises, besides the errors of `discard`, UnknownEndpoint if the endpoint was deleted, Gone if
    the event is no longer stored, ArchiveUnavailable, ArchiveDamaged.
    """
    found = selectors.find_delivery_row(actor=actor, key=key)
    if found.endpoint.deleted_at is not None:
        raise UnknownEndpoint(field="delivery")
    if found.gap_first is None:
        selectors.event_bytes(actor, found)
    with transaction.atomic():
        values = {**_lock(found, RESEND, force=options.force), **options._asdict()}
        raw_connection().execute(SQL["resend"], values)
        if options.force:
            raw_connection().execute(SQL["end_pause"], values)
        changed = selectors.find_delivery_row(actor=actor, key=key)
        _announce(actor, found, RESEND, **options._asdict())
    return changed


def discard(*, actor: Actor, key: Sequence[int], action: Action) -> Delivery:
    """Set a delivery aside: SKIP one that is pending, DISCARD one that has failed.

    Raises UnknownDelivery, Forbidden, DeliveryInProgress, DeliveryState.
    """
    found = selectors.find_delivery_row(actor=actor, key=key)
    with transaction.atomic():
        raw_connection().execute(SQL["discard"], _lock(found, action, force=False))
        changed = selectors.find_delivery_row(actor=actor, key=key)
        _announce(actor, found, action)
    return changed


def _lock(delivery: Delivery, action: Action, *, force: bool) -> dict[str, Any]:
    """Lock a delivery for an action and return its key. Raises DeliveryInProgress, DeliveryState;
    UnknownDelivery if its partition was retired since it was read.
    """
    key = {name: getattr(delivery, name) for name in _KEY}
    values = {**key, "claim_s": limits.CALLBACK_CLAIM_S}
    locked = cursor_of(raw_connection(), _Locked).execute(SQL["lock_delivery"], values).fetchone()
    if locked is None:
        raise UnknownDelivery(field="delivery")
    if locked.is_posted:
        raise DeliveryInProgress(field="delivery", retry_after_s=limits.DELIVERY_IN_PROGRESS_S)
    possible = action.possible(force=force)
    if locked.state not in possible:
        refusal = _refusal(action, locked.state)
        raise DeliveryState(
            refusal, field="delivery", state=locked.state, possible=sorted(possible)
        )
    return key


def _refusal(action: Action, state: str) -> str:
    if state in action.forced:
        return f"The delivery is `{state}`; to {action.name} it all the same, give `force`."
    return f"The delivery is `{state}`, and {action.name} is not possible then; see `possible`."


def _announce(actor: Actor, delivery: Delivery, action: Action, **more: Any) -> None:
    """Announce the action; last in the transaction. Workers are notified after it."""
    attributes = {
        "client": delivery.endpoint.client.name,
        "endpoint": delivery.endpoint_id,
        "stream": delivery.stream_name,
        "segment": str(delivery.segment_uuid),
        "sequence": delivery.sequence,
        **more,
    }
    announce(zone=actor.zone, type=action.announced, attributes=attributes)
    notify_workers()


def notify_workers() -> None:
    """Notify workers of new deliveries after the commit of the current transaction."""
    transaction.on_commit(lambda: raw_connection().execute(WORKERS_SQL["notify"]), robust=True)
