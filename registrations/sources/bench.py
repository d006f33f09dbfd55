"""The test bench: applies a map to a request without emitting anything. Django module."""

from collections.abc import Mapping
from typing import Any

from eventhub.base.errors import InvalidField
from eventhub.event.inbound import JSON, stored_bytes
from registrations.sources.errors import UnknownSample, UnmappedDelivery
from registrations.sources.events import MappedSource, event_of, mapped_fields
from registrations.sources.mapping import parse_map
from registrations.sources.models import Source
from registrations.sources.received import ReceivedRequest
from registrations.sources.selectors import samples_of
from registrations.sources.services import check_definition

_REQUEST = ("headers", "query", "body")


def try_map(source: Source, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the event of the given request, or of a stored sample, with the body as text. Raises
    UnknownSample, UnmappedDelivery, and what the emit route raises about the event.
    """
    check_definition(source.provider, given)
    request = _request(source, given)
    mapping = parse_map(given.get("mapping", source.mapping))
    mapped = MappedSource(source.name, source.provider, mapping)
    stored_bytes(event_of(mapped, request), client=source.client_name, mask=1)
    fields = mapped_fields(mapped, request)
    if fields.pop("body_base64", None) is not None:
        fields["body"] = request.body.decode("utf-8", "replace")
    return fields


def _request(source: Source, given: Mapping[str, Any]) -> ReceivedRequest:
    if "sample" in given:
        if any(name in given for name in _REQUEST):
            message = "Give a sample, or a request; not both."
            raise InvalidField(message, field="sample")
        return _sample(source, given["sample"])
    headers = {"content-type": JSON}
    for name, value in given.get("headers", {}).items():
        if not isinstance(value, str):
            raise InvalidField("A header is a text.", field="headers")
        headers[name.lower()] = value
    return ReceivedRequest(headers, given.get("query", ""), given.get("body", "").encode())


def _sample(source: Source, id: int) -> ReceivedRequest:
    found = samples_of(source_id=source.pk).filter(pk=id).first()
    if found is None:
        raise UnknownSample(field="sample")
    if found.body is None or len(found.body) < found.body_bytes:
        message = "The body of this sample is not kept as a whole; give the request."
        raise UnmappedDelivery(message, field="sample")
    return ReceivedRequest(found.headers, found.query, bytes(found.body))
