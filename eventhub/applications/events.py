"""The events of the stream `eventhub.applications`: what changed is the type, and the attributes
are the whole state, so that the latest event of a key needs no earlier one. Plain module.
"""

from datetime import datetime
from typing import Any, NamedTuple

from eventhub.event import protobuf_codec
from eventhub.event.envelope import DEFAULT_MASK, HUB_SOURCE, Event
from eventhub.event.json_codec import moment_text
from eventhub.eventlog.drafts import Draft
from eventhub.eventlog.system import SYSTEM_DOMAIN

STATES = ("online", "offline", "degraded", "faulted")
STATE = "application.state"
MONITORING_STARTED = "application.monitoring.started"
MONITORING_CHANGED = "application.monitoring.changed"
MONITORING_STOPPED = "application.monitoring.stopped"
DELETED = "application.deleted"
GROUP_STATE = "application_group.state"
GROUP_DELETED = "application_group.deleted"
MISSED = "heartbeat missed"  # the reason of an application without a heartbeat


class ApplicationState(NamedTuple):
    """An application after a change. `previous`: its state before; None: it is new."""

    id: int
    name: str
    state: str
    reason: str
    since: datetime
    timeout_s: int | None
    previous: str | None


class GroupState(NamedTuple):
    """A group after a change of its state. `previous`: its state before; None: it is new."""

    name: str
    state: str
    since: datetime
    previous: str | None


def application_draft(
    stream_id: int, type: str, found: ApplicationState, *, action: str = ""
) -> Draft:
    """Build the event of a change of an application; its key is the name."""
    application, _, component = found.name.partition("/")
    attributes = {
        "name": found.name,
        "application": application,
        "component": component or None,
        "state": found.state,
        "previous": found.previous,
        "reason": found.reason or None,
        "since": moment_text(found.since),
        "monitored": found.timeout_s is not None,
        "timeout_s": found.timeout_s,
    }
    return _draft(stream_id, type, found.name, attributes, action)


def group_draft(stream_id: int, type: str, found: GroupState, *, action: str = "") -> Draft:
    """Build the event of a change of a group; its key is `group:` and the name."""
    attributes = {
        "group": found.name,
        "state": found.state,
        "previous": found.previous,
        "since": moment_text(found.since),
    }
    return _draft(stream_id, type, f"group:{found.name}", attributes, action)


def _draft(stream_id: int, type: str, key: str, attributes: dict[str, Any], action: str) -> Draft:
    ends = type in (DELETED, GROUP_DELETED)
    event = Event(
        SYSTEM_DOMAIN,
        type,
        {name: value for name, value in attributes.items() if value is not None},
        source=HUB_SOURCE,
        node="hub",
        application=(key,) if "name" in attributes else (),
        key=key,
        correlation=action,
        tombstone=ends,
    )
    payload = protobuf_codec.encode(event)
    return Draft(stream_id, DEFAULT_MASK, payload, key=key, tombstone=ends)
