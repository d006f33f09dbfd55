"""POST /v1/streams/{stream}/events: authorize, parse, append, and answer after the commit.
Plain module.
"""

from typing import NamedTuple

from eventhub.access.principal import Principal
from eventhub.base import limits
from eventhub.base.errors import FieldTooLong, InvalidField
from eventhub.event.envelope import DEFAULT_MASK
from eventhub.event.inbound import JSON
from eventhub.event.plain_events import plain_payloads
from eventhub.event.requests import EmitRequest, read_events
from eventhub.eventlog.drafts import Draft
from eventhub.eventlog.stored import StreamInfo
from eventhub.http.call import Call
from eventhub.http.emit import (
    EmitServices,
    Sender,
    appended,
    emit,
    require_allowed,
    require_emit,
    require_quotas,
)
from eventhub.http.messages import (
    Headers,
    Response,
    read_body,
    read_head,
    require_uncompressed,
    utf8_path,
)


class EmitHead(NamedTuple):
    """What the route reads of a request's path and headers, once it is known to be without errors.
    It has no headers of a CloudEvent.
    """

    stream: str
    credential: str
    content_type: str
    idempotency_key: str

    @classmethod
    def read(cls, path: str, headers: Headers) -> "EmitHead":
        """Read them. Raises subclasses of BadRequest, Unauthenticated, UnsupportedMediaType."""
        head = read_head(headers)
        key, _ = _own_headers(headers)
        return cls(utf8_path(path), head.credential, head.content_type, key)


async def emit_route(call: Call) -> Response:
    """Serve the route. Credentials are checked before the body is read, so that a caller without
    any cannot make the hub read. Admission in fair order then bounds the wait for other clients'
    requests to a few.
    """
    stream = utf8_path(call.parameters[0])
    headers = call.scope["headers"]
    head = read_head(headers, compressed=True)  # refused below, with the position of the stream
    principal, info = await _authorized(call, stream, head.credential)
    key, ce_headers = _own_headers(headers)
    body = await read_body(call.incoming, head.content_length)
    # the data of a CloudEvent keep their media type with its parameters
    media_type = dict(headers).get(b"content-type", b"").decode("latin-1") if ce_headers else ""
    request = EmitRequest(body, head.content_type, ce_headers, media_type)
    return await _append(call, Sender(principal, key), info, request)


async def emit_whole(call: Call, head: EmitHead, body: bytes) -> Response:
    """Serve the route for a request that has arrived completely, and whose head is known."""
    principal, info = await _authorized(call, head.stream, head.credential)
    sender = Sender(principal, head.idempotency_key)
    return await _append(call, sender, info, EmitRequest(body, head.content_type, _NO_HEADERS))


_NO_HEADERS: dict[str, str] = {}


async def _authorized(call: Call, stream: str, credential: str) -> tuple[Principal, StreamInfo]:
    """Return the caller and the stream, if that may be emitted into now."""
    principal = await call.authenticate(credential)
    require_emit(principal, stream)
    info = await call.find_stream(principal, stream)
    if principal.rates is not None or principal.storage_quota is not None:
        await require_quotas(call.authorizer, principal, info)
    return principal, await call.authorizer.lasting(principal, info)


async def _append(call: Call, sender: Sender, info: StreamInfo, request: EmitRequest) -> Response:
    """Parse and append the events of a request, and answer."""
    principal = sender.principal
    services = EmitServices(call.log, call.authorizer, call.types)
    cost = 1 + len(request.body) // limits.EMIT_BYTES_PER_SLOT
    async with call.emits.hold(principal.queue_owner, cost):
        payloads = _plain_payloads(services, sender, info, request)
        if payloads is None:
            events = read_events(request, info.name, principal.client)
            emitted = await emit(services, sender, info, events)
        else:
            await require_allowed(services, principal, info, len(payloads))
            drafts = [Draft(info.id, DEFAULT_MASK, payload) for payload in payloads]
            emitted = await appended(services, principal, info, drafts)
    response = emitted.response()
    if principal.rates is not None:
        response.headers.extend(call.authorizer.rates.headers(principal))
    return response


def _plain_payloads(
    services: EmitServices, sender: Sender, info: StreamInfo, request: EmitRequest
) -> list[bytes] | None:
    """Return the stored bytes of the events if nothing but their JSON decides on them; None if each
    must be looked at: for a type, a session, a key of the request, a body that filters read, or
    because it is not plain.
    """
    principal = sender.principal
    if (
        request.content_type != JSON
        or request.ce_headers
        or sender.idempotency_key
        or principal.session is not None
        or info.undeclared == "refuse"
        or info.filterable_data  # a body has to be within its bounds, and its event is marked
        or not services.types.has_none(principal.zone_id)
    ):
        return None
    return plain_payloads(request.body, principal.client)


_USUAL = frozenset(  # headers that `_own_headers` does not look at
    (b"host", b"authorization", b"content-type", b"content-length", b"accept", b"user-agent")
)


def _own_headers(headers: Headers) -> tuple[str, dict[str, str]]:
    """Return the request's Idempotency-Key ("": none) and the headers of a binary CloudEvent, by
    name without `ce-`. Raises UnsupportedMediaType for a compressed body.
    """
    key = ""
    ce_headers: dict[str, str] = {}
    for name, value in headers:
        if name in _USUAL:
            continue
        if name == b"idempotency-key":
            key = _key(value.decode("latin-1"))
        elif name in (b"if-match", b"if-none-match"):
            message = "Events are appended without a condition; PUT the state of a key under one."
            raise InvalidField(message, field=name.decode().title())
        elif name == b"content-encoding":
            require_uncompressed(value)
        elif name.startswith(b"ce-"):
            ce_headers[name[3:].decode("latin-1")] = value.decode("latin-1")
    return key, ce_headers


def _key(text: str) -> str:
    text = text.strip().strip('"')
    if not text or not text.isascii() or not text.isprintable():
        raise InvalidField("The key must be printable ASCII.", field="Idempotency-Key")
    if len(text) > limits.NAME_CHARS_MAX:
        raise FieldTooLong(field="Idempotency-Key", chars_max=limits.NAME_CHARS_MAX)
    return text
