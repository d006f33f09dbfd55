"""Reads the body of an emit request, in any format that the hub accepts, by Content-Type.
Plain module.
"""

from collections.abc import Mapping
from typing import NamedTuple

from eventhub.base import errors
from eventhub.event import cloudevents, fox_xml, oif
from eventhub.event.inbound import JSON, NDJSON, EventIn, parse

# Content types of emit requests. A binary CloudEvent, known by its headers, may have any other.
CONTENT_TYPES = (
    JSON,
    NDJSON,
    cloudevents.STRUCTURED,
    cloudevents.BATCH,
    oif.CONTENT_TYPE,
    *fox_xml.CONTENT_TYPES,
)


class EmitRequest(NamedTuple):
    """A request's body with the headers that determine its format."""

    body: bytes
    content_type: str  # in lower case, without parameters
    ce_headers: Mapping[str, str]  # those that begin with `ce-`, by name without that prefix
    media_type: str = ""  # the whole Content-Type, if there are `ce-` headers


def read_events(request: EmitRequest, stream: str, client: str) -> list[EventIn]:
    """Return the events, at least one. Where the format names a stream and a client, they must be
    these. Raises subclasses of BadRequest with `index` and `field`, BatchTooLarge,
    UnsupportedMediaType.
    """
    body, content_type = request.body, request.content_type
    if content_type == cloudevents.BATCH:
        return _not_empty(cloudevents.read_batch(body))
    if content_type == cloudevents.STRUCTURED:
        return [cloudevents.read_structured(body)]
    if "specversion" in request.ce_headers:
        return [cloudevents.read_binary(request.ce_headers, request.media_type, body)]
    if content_type == oif.CONTENT_TYPE:
        return _not_empty(oif.read(body))
    if content_type in fox_xml.CONTENT_TYPES:
        return [fox_xml.require_origin(fox_xml.read(body), stream=stream, client=client)]
    return parse(body, content_type)


def _not_empty(found: list[EventIn]) -> list[EventIn]:
    if not found:
        raise errors.EmptyBatch
    return found
