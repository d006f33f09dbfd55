"""The routes that read the log: dry runs, and the registrations that an event matched. Plain
module.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import ExitStack
from typing import Any

import orjson

from eventhub.access.principal import Principal, is_shown
from eventhub.base import limits, metrics
from eventhub.base.client_slots import ClientSlots
from eventhub.base.errors import (
    EventHubError,
    InvalidField,
    UnknownEvent,
    UnsupportedMediaType,
)
from eventhub.base.strict_json import parse_object
from eventhub.event.audience import is_visible_in_zone
from eventhub.event.inbound import JSON, NDJSON
from eventhub.eventlog.stored import StoredEvent, StreamInfo
from eventhub.eventlog.system import SYSTEM_STREAM_ID
from eventhub.http.call import Call
from eventhub.http.messages import (
    Response,
    Scope,
    StreamingResponse,
    read_body,
    read_head,
    utf8_path,
)
from eventhub.types.registry import ZoneHierarchy
from registrations.explain.conditions import EvaluatedEvent
from registrations.explain.dry_run import DryRun, DryRunCaller, DryRunInput, DryRunJson
from registrations.explain.dry_run_request import bits_of, parse_dry_run, range_of
from registrations.explain.search import EventMatchesJson, MatchSearch
from registrations.explain.statements import ExplainScope, event_at

_NUMBER_CHARS_MAX = 18


class ExplainRoutes:
    """The routes of one process."""

    def __init__(self) -> None:
        self._slots = ClientSlots(
            limits.EXPLAIN_PER_PROCESS_MAX,
            limits.EXPLAIN_PER_CLIENT_MAX,
            of="dry runs and searches",
        )

    async def dry_run(self, call: Call) -> Response | StreamingResponse:
        """Answer POST /v1/filters/dry-run. Raises errors of filters, positions and streams."""
        head = read_head(call.scope["headers"])
        principal = await call.authenticate(head.credential)
        if head.content_type not in ("", JSON):
            raise UnsupportedMediaType("The body is JSON.")
        body = await read_body(
            call.incoming, head.content_length, bytes_max=limits.MANAGE_BODY_BYTES_MAX
        )
        options = parse_dry_run(parse_object(body))
        principal.require_listen(options.stream)
        stream = await call.find_stream(principal, options.stream)
        mask = await bits_of(call.authorizer, principal.zone_id, options.mask)
        hierarchy = ZoneHierarchy(call.types, stream.zone_id)
        closing = ExitStack()
        closing.enter_context(self._slots.one(principal.client_id))
        try:
            bounds, position = await range_of(call.log, stream, options)
            caller = DryRunCaller(call.authorizer, head.credential, principal, call.incoming.peer)
            run = DryRun(call.log, caller, DryRunInput(stream, options, mask, bounds, hierarchy))
            closing.enter_context(metrics.EXPLAIN_S.labels(operation="dry_run").time())
            if _wants_lines(call.scope):
                return _stream(run, caller, closing)._replace(position=position)
            async for _ in run.steps():
                pass
        except BaseException:
            closing.close()
            raise
        closing.close()
        return _answer(run.json())._replace(position=position)

    async def matches(self, call: Call) -> Response:
        """Answer GET /v1/streams/{stream}/events/{sequence}/matches. Raises UnknownStream,
        UnknownEvent, Gone and other errors of reading.
        """
        principal = await call.authenticate(read_head(call.scope["headers"]).credential)
        name, text = (utf8_path(raw) for raw in call.parameters)
        after = _after(call.query())
        principal.require_listen(name)
        stream = await call.find_stream(principal, name)
        if not (text.isascii() and text.isdigit() and len(text) <= _NUMBER_CHARS_MAX):
            raise UnknownEvent(stream=name)
        with (
            self._slots.one(principal.client_id),
            metrics.EXPLAIN_S.labels(operation="matches").time(),
        ):
            stored = await event_at(call.log, stream, int(text))
            _require_shown(stored, stream, principal)
            evaluated = EvaluatedEvent(
                stored.event, stored.mask, stored.sequence, stored.appended_at_us
            )
            hierarchy = ZoneHierarchy(call.types, stream.zone_id)
            await hierarchy.learn([stored.event])
            search = MatchSearch(principal, evaluated, hierarchy)
            client = None if principal.manages_zone else principal.client_id
            scope = ExplainScope(principal.zone_id, client, stream.id, stored.sequence)
            await search.run(call.log, scope, after, call.incoming.peer)
        found: EventMatchesJson = {"stream": name, **stored.cursor.json(), **search.json()}
        return _answer(found)


def _stream(run: DryRun, caller: DryRunCaller, closing: ExitStack) -> StreamingResponse:
    async def close() -> None:
        closing.close()

    return StreamingResponse(200, _lines(run, caller, closing), [], NDJSON.encode(), close)


async def _lines(
    run: DryRun, caller: DryRunCaller, closing: ExitStack
) -> AsyncGenerator[bytes, None]:
    """Yield lines of progress, unless the last one is still unsent, and the result. The slot is
    released before the last line, so a slow reader does not block others.
    """
    clock = asyncio.get_running_loop().time
    sent_s = clock()
    try:
        async for _ in run.steps():
            if clock() - sent_s >= limits.DRY_RUN_PROGRESS_S and not caller.peer.unsent_bytes():
                sent_s = clock()
                yield _line({"op": "progress", **run.counts()})
    except EventHubError as error:
        metrics.REFUSED.labels(code=error.code).inc()
        yield _line({"op": "error", **error.problem()})
        return
    finally:
        closing.close()
    yield _line({"op": "end", **run.json()})


def _line(message: Mapping[str, Any]) -> bytes:
    return orjson.dumps(message) + b"\n"


def _answer(body: DryRunJson | EventMatchesJson) -> Response:
    return Response(200, orjson.dumps(body), [(b"cache-control", b"no-store")])


def _wants_lines(scope: Scope) -> bool:
    options = b",".join(value for name, value in scope["headers"] if name == b"accept")
    return NDJSON.encode() in options.lower()


def _after(query: dict[str, str]) -> int:
    """Parse the query parameter `after`, the `next` of the previous answer."""
    text = query.get("after", "0")
    if not (text.isascii() and text.isdigit() and len(text) <= _NUMBER_CHARS_MAX):
        raise InvalidField("Pass the `next` of the previous answer.", field="after")
    return int(text)


def _require_shown(stored: StoredEvent, stream: StreamInfo, principal: Principal) -> None:
    """Raise UnknownEvent if the caller may not see the event."""
    event = stored.event
    own = stream.id != SYSTEM_STREAM_ID or is_visible_in_zone(event, principal.zone)
    if not own or not is_shown(event, principal):
        raise UnknownEvent(stream=stream.name)
