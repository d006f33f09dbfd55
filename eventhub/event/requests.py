"""The body of an emit request in any of the forms that the hub takes, by its Content-Type.
Plain module.
"""

from collections.abc import Mapping
from typing import NamedTuple

from eventhub.base import errors
from eventhub.event import cloudevents, fox_xml, oif
from eventhub.event.inbound import JSON, NDJSON, EventIn, parse

# Content types that an emit request may have, beside any with the headers of a binary CloudEvent.
CONTENT_TYPES = (
    JSON,
    NDJSON,
    cloudevents.STRUCTURED,
    cloudevents.BATCH,
    oif.CONTENT_TYPE,
    *fox_xml.CONTENT_TYPES,
)


class EmitRequest(NamedTuple):
    """A request's body and what says how to read it."""

    body: bytes
    content_type: str  # in lower case, without parameters
    ce_headers: Mapping[str, str]  # those that begin with `ce-`, by their names without it
    media_type: str = ""  # the whole Content-Type, if there are such headers


def read_events(request: EmitRequest, stream: str, client: str) -> list[EventIn]:
    """The events, at least one; what the form says of stream and client must be these.

    Raises BadRequest's kin with index and field, BatchTooLarge, UnsupportedMediaType.
    """
    body, content_type = request.body, request.content_type
    if content_type == cloudevents.BATCH:
        return _some(cloudevents.read_batch(body))
    if content_type == cloudevents.STRUCTURED:
        return [cloudevents.read_structured(body)]
    if "specversion" in request.ce_headers:
        return [cloudevents.read_binary(request.ce_headers, request.media_type, body)]
    if content_type == oif.CONTENT_TYPE:
        return _some(oif.read(body))
    if content_type in fox_xml.CONTENT_TYPES:
        return [fox_xml.require_origin(fox_xml.read(body), stream=stream, client=client)]
    return parse(body, content_type)


def _some(found: list[EventIn]) -> list[EventIn]:
    if not found:
        raise errors.EmptyBatch
    return found
