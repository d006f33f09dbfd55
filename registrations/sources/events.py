"""The event that a source emits for a request: the mapped fields and the raw body. Plain module."""

import base64
from typing import Any, NamedTuple

from eventhub.base.errors import EventHubError
from eventhub.event.inbound import EventIn, from_objects
from registrations.sources.mapping import SourceMap, apply_map
from registrations.sources.providers.registry import PROVIDERS
from registrations.sources.received import ReceivedRequest

_UNKNOWN_TYPE = "application/octet-stream"


class MappedSource(NamedTuple):
    """What decides on the event of a request, besides the request."""

    name: str
    provider: str
    mapping: SourceMap


def mapped_fields(source: MappedSource, request: ReceivedRequest) -> dict[str, Any]:
    """Return the event in the form of the emit route. The node is the source's name, so that equal
    ids of two sources of a client are two events. Raises UnmappedDelivery, MalformedJson.
    """
    fields = apply_map(source.mapping, PROVIDERS[source.provider].usual, request)
    fields["node"] = source.name
    if request.body:
        fields["content_type"] = request.media_type or _UNKNOWN_TYPE
        fields["body_base64"] = base64.b64encode(request.body).decode()
    return fields


def event_of(source: MappedSource, request: ReceivedRequest) -> EventIn:
    """Return the event of a request. Raises what `mapped_fields` raises, and subclasses of
    BadRequest if the map makes no event.
    """
    fields = mapped_fields(source, request)
    try:
        [event] = from_objects([fields])
    except EventHubError as error:
        error.index = None
        raise
    return event
