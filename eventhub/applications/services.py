"""Reports of states, heartbeats, monitoring and groups. Every change of a state is an event of the
zone's stream `eventhub.applications`, in the transaction of the change. Django module.

States change one after the other in a zone, under the lock of that stream's head, so that a group's
state is derived from what is committed. What changes no state takes no such lock.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from eventhub.access.grants import APPLICATIONS
from eventhub.access.principal import Actor
from eventhub.access.rate_limits import spend_now
from eventhub.api.announcements import append_events, raw_connection
from eventhub.api.replies import current
from eventhub.applications import events
from eventhub.applications.changes import POLICY, changed_groups
from eventhub.applications.errors import UnknownApplicationGroup
from eventhub.applications.events import ApplicationState, GroupState
from eventhub.applications.models import Application, ApplicationGroup, ApplicationMember, State
from eventhub.applications.selectors import (
    applications_of,
    find_application,
    find_group,
    groups_of,
    member_ids,
    reply_about_states,
)
from eventhub.base import limits
from eventhub.base.errors import LimitReached
from eventhub.eventlog.append import lock_head
from eventhub.eventlog.drafts import Draft
from eventhub.eventlog.errors import StreamDeleting
from eventhub.streams.selectors import about_stream
from eventhub.streams.services import hub_stream


def report(*, actor: Actor, name: str, state: str, reason: str) -> tuple[Application, bool]:
    """Store the state of an application, and create it if there is none. Return it, and True if it
    is new. The state and reason that it has count as a heartbeat only, and are no event. Raises
    LimitReached, RateLimited, ZoneStorageFull.
    """
    reply_about_states(zone_id=actor.zone_id)
    rows = applications_of(zone_id=actor.zone_id).filter(name=name)
    same = rows.filter(state=state, reason=reason, reported_state=state)
    if same.update(reported_at=Now(), heartbeat_at=Now()):
        return find_application(zone_id=actor.zone_id, name=name), False
    _admit(actor)
    with _changing(actor) as stream_id:
        found = rows.first()
        if found is None:
            _require_room(actor)
            found = _new(actor, name)
        elif (found.state, found.reason, found.reported_state) == (state, reason, state):
            return found, False  # another request has reported it since
        previous = found.state if found.pk else None
        found.reported_state, found.reported_reason = state, reason
        found.reported_at = Now()
        _enter(found, state, reason)
        _append(stream_id, events.STATE, found, previous)
    return find_application(zone_id=actor.zone_id, name=name), previous is None


def heartbeat(*, actor: Actor, name: str) -> Application:
    """Store a heartbeat; an application whose heartbeat was missed is in its reported state again.
    Raises UnknownApplication.
    """
    reply_about_states(zone_id=actor.zone_id)
    rows = applications_of(zone_id=actor.zone_id).filter(name=name)
    if not rows.filter(state=F("reported_state")).update(heartbeat_at=Now()):
        find_application(zone_id=actor.zone_id, name=name)
        _admit(actor)
        with _changing(actor) as stream_id:
            found = find_application(zone_id=actor.zone_id, name=name)
            if found.state != found.reported_state:
                previous = found.state
                _enter(found, found.reported_state, found.reported_reason)
                _append(stream_id, events.STATE, found, previous)
    return find_application(zone_id=actor.zone_id, name=name)


def monitor(*, actor: Actor, name: str, timeout_s: int | None) -> Application:
    """Start to monitor the heartbeats of an application, change the time-out, or stop (None).
    Idempotent. Raises UnknownApplication.
    """
    reply_about_states(zone_id=actor.zone_id)
    found = find_application(zone_id=actor.zone_id, name=name)
    if found.timeout_s == timeout_s:
        return found
    with _changing(actor) as stream_id:
        found = find_application(zone_id=actor.zone_id, name=name)
        before, found.timeout_s = found.timeout_s, timeout_s
        if before != timeout_s:
            type = events.MONITORING_CHANGED
            if timeout_s is None:
                type = events.MONITORING_STOPPED
            elif before is None:
                type = events.MONITORING_STARTED
            _enter(found, found.state, found.reason)
            _append(stream_id, type, found, None)
    return find_application(zone_id=actor.zone_id, name=name)


def delete(*, actor: Actor, name: str) -> None:
    """Delete an application, also from its groups. Raises UnknownApplication."""
    reply_about_states(zone_id=actor.zone_id)
    find_application(zone_id=actor.zone_id, name=name)
    with _changing(actor) as stream_id:
        found = find_application(zone_id=actor.zone_id, name=name)
        members = ApplicationMember.objects.filter(application=found.pk)
        groups = [*members.values_list("group", flat=True)]
        members.delete()
        last = _state_of(found, None)
        found.delete()
        _emit(
            [
                events.application_draft(stream_id, events.DELETED, last, action=_action()),
                *_group_drafts(stream_id, groups=groups),
            ]
        )


def put_group(
    *, actor: Actor, name: str, applications: Sequence[str]
) -> tuple[ApplicationGroup, bool]:
    """Create a group, or set its members. Return it, and True if it is new. It is an event if its
    state changes. Idempotent. Raises UnknownApplication with the index of a member, LimitReached.
    """
    reply_about_states(zone_id=actor.zone_id)
    member_ids(zone_id=actor.zone_id, names=applications)
    with _changing(actor) as stream_id:
        ids = member_ids(zone_id=actor.zone_id, names=applications)
        rows = groups_of(zone_id=actor.zone_id)
        group = rows.filter(name=name).first()
        is_new = group is None
        if group is None:
            if rows.count() >= limits.APPLICATION_GROUPS_PER_ZONE_MAX:
                raise LimitReached(limit=limits.APPLICATION_GROUPS_PER_ZONE_MAX)
            group = ApplicationGroup.objects.create(
                zone_id=actor.zone_id,
                name=name,
                state=State.OFFLINE,
                since=Now(),
                created_at=Now(),
            )
        members = ApplicationMember.objects.filter(group=group.pk)
        members.exclude(application__in=ids).delete()
        ApplicationMember.objects.bulk_create(
            [ApplicationMember(group_id=group.pk, application_id=id) for id in ids],
            ignore_conflicts=True,
        )
        drafts = _group_drafts(stream_id, groups=[group.pk])
        if is_new:
            made = find_group(zone_id=actor.zone_id, name=name)
            drafts = [_group_draft(stream_id, events.GROUP_STATE, made)]
        if drafts:
            _emit(drafts)
    return find_group(zone_id=actor.zone_id, name=name), is_new


def delete_group(*, actor: Actor, name: str) -> None:
    """Delete a group; its applications remain. Raises UnknownApplicationGroup."""
    reply_about_states(zone_id=actor.zone_id)
    find_group(zone_id=actor.zone_id, name=name)
    with _changing(actor) as stream_id:
        found = ApplicationGroup.objects.filter(zone=actor.zone_id, name=name).first()
        if found is None:
            raise UnknownApplicationGroup(field="application_group")
        draft = _group_draft(stream_id, events.GROUP_DELETED, found)
        ApplicationMember.objects.filter(group=found.pk).delete()
        found.delete()
        _emit([draft])


@contextmanager
def _changing(actor: Actor) -> Iterator[int]:
    """Lock the states of a zone until the end of the block, which is a transaction; yield the id of
    their stream. Raises StreamDeleting or ZoneDeleting if the zone is to be deleted, LimitReached.
    """
    stream = hub_stream(zone_id=actor.zone_id, zone=actor.zone, name=APPLICATIONS, policy=POLICY)
    if stream.deletes_at_us is not None:
        raise StreamDeleting.of(APPLICATIONS, stream.deletes_at_us)
    about_stream(stream)
    with transaction.atomic():
        lock_head(raw_connection(), stream.id)
        yield stream.id


def _admit(actor: Actor) -> None:
    """Count an event of the actor's client. Raises RateLimited, ZoneStorageFull."""
    if actor.principal is not None and not actor.principal.is_operator:
        actor.principal.require_storage()
        spend_now(raw_connection(), actor.principal)


def _require_room(actor: Actor) -> None:
    if applications_of(zone_id=actor.zone_id).count() >= limits.APPLICATIONS_PER_ZONE_MAX:
        raise LimitReached(limit=limits.APPLICATIONS_PER_ZONE_MAX)


def _new(actor: Actor, name: str) -> Application:
    return Application(zone_id=actor.zone_id, name=name, state="", created_at=Now())


def _enter(found: Application, state: str, reason: str) -> None:
    """Save the application in a state from now on; a heartbeat is expected after the time-out."""
    if found.state != state:
        found.since = Now()
    found.state, found.reason, found.heartbeat_at = state, reason, Now()
    found.due_at = None
    if found.timeout_s is not None and state != State.OFFLINE:
        found.due_at = Now() + timedelta(seconds=found.timeout_s)
    found.save()


def _append(stream_id: int, type: str, found: Application, previous: str | None) -> None:
    """Append the event of a saved change, and those of the groups whose states changed with it."""
    saved = Application.objects.get(pk=found.pk)
    draft = events.application_draft(stream_id, type, _state_of(saved, previous), action=_action())
    _emit([draft, *_group_drafts(stream_id, applications=[saved.pk])])


def _state_of(found: Application, previous: str | None) -> ApplicationState:
    return ApplicationState(
        found.pk,
        found.name,
        found.state,
        found.reason,
        found.since,
        found.timeout_s,
        previous,
    )


def _group_draft(stream_id: int, type: str, found: ApplicationGroup) -> Draft:
    state = GroupState(found.name, found.state, found.since, None)
    return events.group_draft(stream_id, type, state, action=_action())


def _group_drafts(
    stream_id: int, *, applications: Sequence[int] = (), groups: Sequence[int] = ()
) -> list[Draft]:
    """Compute the states of groups again, and build the events of those that changed."""
    found = changed_groups(raw_connection(), applications, groups)
    return [
        events.group_draft(stream_id, events.GROUP_STATE, one, action=_action()) for one in found
    ]


def _emit(drafts: Sequence[Draft]) -> None:
    """Append in the current transaction, last; the reply's headers get the positions."""
    appended = append_events(drafts)
    if reply := current():
        reply.add(appended)


def _action() -> str:
    reply = current()
    return reply.action if reply else ""
