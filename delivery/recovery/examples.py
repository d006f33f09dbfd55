"""Sends an example event of a type to one endpoint, as a delivery like any other. Django module.

The event is appended to a stream of the hub, for which no registration has callbacks, and addressed
to the client of the endpoint alone.
"""

from functools import partial
from typing import Any, NamedTuple

import psycopg
from django.db import transaction

from delivery import selectors
from delivery.models import Delivery
from delivery.partitions.create import create_partitions
from delivery.recovery.log_pages import SQL
from delivery.recovery.services import notify_workers
from eventhub.access.grants import EXAMPLES
from eventhub.access.principal import Actor
from eventhub.api.announcements import append_events, raw_connection
from eventhub.api.asynchronous import run_connected
from eventhub.base import limits
from eventhub.event.envelope import DEFAULT_MASK, HUB_SOURCE, Event
from eventhub.event.inbound import EventIn
from eventhub.event.protobuf_codec import encode
from eventhub.eventlog.drafts import Appended, Draft
from eventhub.eventlog.models import Segment
from eventhub.streams.services import hub_stream
from eventhub.types import selectors as types
from eventhub.types.definitions import schemas_of
from eventhub.types.examples import example_of
from registrations.endpoints.order_key import lane_number, order_path
from registrations.errors import UnknownEndpoint
from registrations.models import Endpoint

_POLICY = {
    "retain_events": limits.EXAMPLES_RETAINED,
    "segment_events_max": limits.EXAMPLES_RETAINED // 10,
}


class ExampleRequest(NamedTuple):
    """A type, declared or not. Without `attributes`, they are made from the type's schema."""

    domain: str
    type: str
    attributes: dict[str, Any] | None = None


def send_example(*, actor: Actor, endpoint: Endpoint, request: ExampleRequest) -> Delivery:
    """Append an example and write its delivery; a worker posts it. Raises TypeViolation if the
    attributes do not satisfy the type.
    """
    event = _event(actor, endpoint, request)
    stream = hub_stream(zone_id=actor.zone_id, zone=actor.zone, name=EXAMPLES, policy=_POLICY)
    try:
        return _send(actor, endpoint, stream.id, event)
    except psycopg.IntegrityError:
        # in a new hub, no forwarder has made a partition of deliveries
        run_connected(partial(create_partitions, wait=True), name="examples")
        return _send(actor, endpoint, stream.id, event)


def _send(actor: Actor, endpoint: Endpoint, stream_id: int, event: Event) -> Delivery:
    with transaction.atomic():
        if not Endpoint.objects.live().select_for_update().filter(pk=endpoint.pk).values_list("pk"):
            raise UnknownEndpoint(field="endpoint")
        [appended] = append_events([Draft(stream_id, DEFAULT_MASK, encode(event))])
        raw_connection().execute(SQL["insert"], _values(endpoint, appended, event))
        notify_workers()
        [key] = Delivery.objects.filter(
            endpoint_id=endpoint.pk,
            sequence=appended.sequence,
            segment_id__in=Segment.objects.filter(uuid=appended.segment),
        ).values_list("endpoint_id", "partition_id", "segment_id", "sequence")
        return selectors.find_delivery_row(actor=actor, key=key)


def _values(endpoint: Endpoint, appended: Appended, event: Event) -> dict[str, Any]:
    by_key = endpoint.ordered and endpoint.order_by
    path = order_path(endpoint.order_by) if by_key else None
    lanes = [] if path is None else [lane_number(appended.stream_id, event, path)]
    return {
        "id": None,
        "endpoint_id": endpoint.pk,
        "segment": appended.segment,
        "registrations": [],
        "version_ids": None,
        "sequences": [appended.sequence],
        "payloads": [None],
        "appended_at_us": [0],
        "lanes": lanes,
        "force": False,
    }


def _event(actor: Actor, endpoint: Endpoint, request: ExampleRequest) -> Event:
    """Return the example, checked against its type. Raises TypeViolation."""
    domain, type = request.domain, request.type
    attributes = request.attributes
    if attributes is None:
        attributes = _attributes(actor, domain, type)
    given = EventIn(domain=domain, type=type, attributes=attributes)
    declared = types.lineage_of(zone_id=actor.zone_id, domain=domain, type=type)
    checker = declared.checker(given, undeclared="accept")
    if checker is not None:
        checker.check(given)
    return Event(
        domain,
        type,
        attributes,
        version=given.version,
        source=HUB_SOURCE,
        node="hub",
        environment={"example": "true"},
        destinations=(endpoint.client.name,),
    )


def _attributes(actor: Actor, domain: str, type: str) -> dict[str, Any]:
    """Return attributes made from the schemas of the type and its supertypes."""
    found: dict[str, Any] = {}
    for each in reversed(types.lineage(zone_id=actor.zone_id, domain=domain, type=type)):
        made = example_of(schemas_of(types.definition_of(each)).attributes)
        found |= made if isinstance(made, dict) else {}
    return found
