"""POST /v1/webhooks/{token}: find the source, verify the request, map it, and emit the event by the
same path as the emit route. Plain module.

Each request reads its source from the database, so that a replaced URL or secret and a disabled
source count at once, in every process.
"""

import hashlib
from typing import Any, NamedTuple

import orjson

from eventhub.access.principal import Principal
from eventhub.base import caller, limits, metrics
from eventhub.base.clock import Clock
from eventhub.base.errors import EventHubError
from eventhub.base.logs import ThrottledLog, get_logger
from eventhub.eventlog.errors import StreamDeleting
from eventhub.eventlog.stored import StreamInfo
from eventhub.http.call import Call
from eventhub.http.emit import EmitServices, Sender, emit, require_quotas
from eventhub.http.messages import Response, Scope, content_length, read_body, require_uncompressed
from eventhub.postgresql.connections import reading
from registrations.endpoints.secrets import Keyring, Unsealable
from registrations.sources.errors import SourceDisabled, UnknownSource, UnverifiedDelivery
from registrations.sources.events import MappedSource, event_of
from registrations.sources.mapping import parse_map
from registrations.sources.providers.provider import Provider, SourceReply
from registrations.sources.providers.registry import PROVIDERS, parse_options
from registrations.sources.received import ReceivedRequest, headers_of
from registrations.sources.samples import kept_body, shown_headers, shown_query
from registrations.sources.statements import (
    FoundSource,
    RequestRecord,
    find_source,
    record_request,
)
from registrations.sources.verification import Unverified

throttled = ThrottledLog(get_logger(__name__))
_MICROSECONDS = 1_000_000


class Emitter(NamedTuple):
    """The client as which a source emits, and its stream."""

    principal: Principal
    stream: StreamInfo


class Outcome(NamedTuple):
    """The outcome of a request: its name as in a sample, the answer if it succeeded, the sequence
    of its event, or why it failed.
    """

    name: str
    reply: SourceReply = SourceReply(b"")
    sequence: int | None = None
    reason: str = ""
    detail: str = ""


def token_digest(token: str) -> bytes:
    """Return the digest that is stored in place of a token, which has 256 random bits."""
    return hashlib.sha256(token.encode()).digest()


class SourceReceiver:
    """The route of one process."""

    def __init__(self, keyring: Keyring, clock: Clock) -> None:
        self._keyring = keyring
        self._clock = clock

    async def __call__(self, call: Call) -> Response:
        """Serve the route. Raises UnknownSource, SourceDisabled, UnverifiedDelivery, and what the
        map and the emit route raise.
        """
        async with reading(call.log.lookups) as connection:
            source = await find_source(connection, token_digest(call.parameters[0]))
        if source is None:
            raise UnknownSource
        if not source.enabled:
            raise SourceDisabled
        emitter = await _emitter(call, source)
        request = await self._read(call)
        slots = 1 + len(request.body) // limits.EMIT_BYTES_PER_SLOT
        async with call.emits.hold(emitter.principal.queue_owner, slots):
            return await self._answer(call, source, emitter, request)

    async def _read(self, call: Call) -> ReceivedRequest:
        headers = call.scope["headers"]
        for name, value in headers:
            if name == b"content-encoding":
                require_uncompressed(value)
        length = content_length(headers)
        body = await read_body(call.incoming, length, bytes_max=limits.EVENT_BYTES_MAX)
        query = call.scope["query_string"].decode("latin-1")
        found = headers_of(headers)
        return ReceivedRequest(found, query, body, _target(call.scope, found))

    async def _answer(
        self, call: Call, source: FoundSource, emitter: Emitter, request: ReceivedRequest
    ) -> Response:
        provider = PROVIDERS[source.provider]
        options = parse_options(provider, orjson.loads(source.options))
        hidden = provider.hidden(options)
        try:
            self._verify(provider, options, source, request)
        except Unverified as error:
            refused = Outcome("refused", reason=error.reason, detail=error.detail)
            await self._record(call, source, hidden, request, refused)
            raise UnverifiedDelivery(
                error.detail, reason=error.reason, provider=source.provider
            ) from None
        try:
            outcome = await _process(call, source, emitter, request)
        except EventHubError as error:
            error.index = None  # a request is one event
            failed = Outcome("failed", reason=error.code, detail=error.message)
            await self._record(call, source, hidden, request, failed)
            raise
        await self._record(call, source, hidden, request, outcome)
        return Response(200, outcome.reply.body, [], outcome.reply.content_type)

    def _verify(
        self, provider: Provider, options: Any, source: FoundSource, request: ReceivedRequest
    ) -> None:
        """Raise Unverified unless one of the valid secrets verifies the request; the newest one's
        refusal counts.
        """
        now_s = self._clock.now_us() // _MICROSECONDS
        refusal: Unverified | None = None
        for sealed in source.sealed:
            try:
                secret = self._keyring.unseal(sealed).decode()
            except Unsealable as error:
                raise EventHubError(str(error)) from None
            try:
                provider.verify(request, secret, options, now_s)
                return
            except Unverified as error:
                refusal = refusal or error
        raise refusal or Unverified("missing_signature", "The source has no valid secret.")

    async def _record(
        self,
        call: Call,
        source: FoundSource,
        hidden: tuple[str, ...],
        request: ReceivedRequest,
        outcome: Outcome,
    ) -> None:
        """Count and store a request; a failure to do so does not change its answer."""
        metrics.SOURCE_REQUESTS.labels(provider=source.provider, outcome=outcome.name).inc()
        headers = orjson.dumps(shown_headers(request.headers, hidden)).decode()
        record = RequestRecord(
            source.id,
            outcome.name,
            outcome.reason,
            outcome.detail.replace("\0", ""),
            caller.current().address,
            outcome.sequence,
            headers,
            shown_query(request.query, hidden),
            None if outcome.name == "refused" else kept_body(request),
            len(request.body),
        )
        try:
            async with reading(call.log.lookups) as connection:
                await record_request(connection, record)
        except EventHubError as error:
            throttled.warning("source_not_recorded", source=source.id, error=error.code)


async def _emitter(call: Call, source: FoundSource) -> Emitter:
    """Return the client and the stream, as the emit route checks them before it reads a body.
    Raises RateLimited, ZoneStorageFull, UnknownStream, StreamDeleting.
    """
    principal = source.principal()
    info = await call.authorizer.stream(principal, source.emits.stream)
    if principal.rates is not None or principal.storage_quota is not None:
        await require_quotas(call.authorizer, principal, info)
    if info.deletes_at_us is not None:
        raise StreamDeleting.of(source.emits.stream, info.deletes_at_us)
    return Emitter(principal, info)


async def _process(
    call: Call, source: FoundSource, emitter: Emitter, request: ReceivedRequest
) -> Outcome:
    """Answer a challenge, or emit the event of a verified request."""
    provider = PROVIDERS[source.provider]
    if reply := provider.challenge(request):
        return Outcome("answered", reply)
    mapped = MappedSource(source.name, source.provider, parse_map(orjson.loads(source.mapping)))
    event = event_of(mapped, request)
    services = EmitServices(call.log, call.authorizer, call.types)
    emitted = await emit(services, Sender(emitter.principal), emitter.stream, [event])
    name = "repeated" if emitted.duplicates else "stored"
    reply = provider.success or SourceReply(orjson.dumps({"outcome": name}))
    positions = [first for _, first, _ in emitted.ranges]
    positions += [sequence for _, _, sequence in emitted.duplicates]
    return Outcome(name, reply, positions[0])


def _target(scope: Scope, headers: dict[str, str]) -> str:
    """Return the URL as the caller addressed it."""
    path = scope.get("raw_path", b"").decode("latin-1") or scope["path"]
    query = scope["query_string"].decode("latin-1")
    return f"{scope['scheme']}://{headers.get('host', '')}{path}{'?' if query else ''}{query}"
