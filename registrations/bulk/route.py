"""POST /v1/registrations/bulk: reads lines and answers with lines at the same time. Django module.

The route runs on the event loop and stores batches in its own threads. At most one batch is in
memory: more of the body is read only when the last batch is stored and the client has read its
answer.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, NamedTuple

import orjson
from django.db import connection

from eventhub.access.authorizer import Authorizer
from eventhub.access.keys import is_key
from eventhub.access.names import valid_name
from eventhub.access.principal import Actor, Principal
from eventhub.api.problems import as_error
from eventhub.api.replies import action_id, replying
from eventhub.base import limits, metrics
from eventhub.base.errors import (
    EventHubError,
    InvalidCredentials,
    InvalidField,
    UnsupportedMediaType,
)
from eventhub.event.inbound import NDJSON
from eventhub.http.call import Call
from eventhub.http.messages import Disconnected, Headers, StreamingResponse, read_head
from registrations.bulk.batches import BatchReader, NumberedLine
from registrations.bulk.lines import Line, read_line
from registrations.bulk.services import BatchResult, apply_lines
from registrations.endpoints.services import callback_addresses
from registrations.scope import Owner, owner

_THREADS = ThreadPoolExecutor(limits.BULK_THREADS, "bulk")


class BulkOptions(NamedTuple):
    """The query parameters of a request, and its action id."""

    client: str | None
    ids: bool  # report the id of each new registration
    action: str


class BulkRequest(NamedTuple):
    """A bulk request: its authorizer, credential and options."""

    authorizer: Authorizer
    credential: str
    options: BulkOptions
    session: str | None  # that it acts through


async def bulk_registrations(call: Call) -> StreamingResponse:
    """Answer POST /v1/registrations/bulk. Raises Unauthenticated and its subclasses,
    UnsupportedMediaType, UnknownField, InvalidField, Disconnected, and for another client Forbidden
    and NotFound.
    """
    head = read_head(call.scope["headers"])
    if not is_key(head.credential):
        raise InvalidCredentials("This route accepts API keys only.")
    principal = await call.authenticate(head.credential)
    if head.content_type != NDJSON:
        raise UnsupportedMediaType(f"Lines are sent as {NDJSON}.")
    options = _parse_options(call)
    session = None if principal.session is None else principal.session.name
    request = BulkRequest(call.authorizer, head.credential, options, session)
    await _in_thread(_owner, principal, options)
    batches = BatchReader(call.incoming)
    await batches.start()  # before the answer starts: a client that waits for `100 Continue` has it
    headers: Headers = [
        (b"cache-control", b"no-store"),
        (b"eventhub-action", options.action.encode()),
    ]
    return StreamingResponse(
        200, _answer(request, principal.zone, batches), headers, NDJSON.encode(), batches.close
    )


async def _answer(
    request: BulkRequest, zone: str, batches: BatchReader
) -> AsyncGenerator[bytes, None]:
    """Yield progress and refused lines, and at the end `done` or the error."""
    totals = dict.fromkeys(("created", "changed", "ended", "repeated", "refused"), 0)
    through = 0
    try:
        while texts := await batches.next():
            lines: Sequence[Line] = await _in_thread(_read, zone, texts)
            while lines:
                principal = await _authorized(request)
                result = await _in_thread(_apply, principal, request.options, lines)
                through = lines[result.lines - 1].number
                lines = lines[result.lines :]
                for name in totals:
                    totals[name] += _count(result, name)
                yield _progress_lines(result, through, ids=request.options.ids)
        yield orjson.dumps({"done": True, "through": through, **totals}) + b"\n"
    except Disconnected:
        return
    except Exception as error:
        found = as_error(error)
        metrics.REFUSED.labels(code=found.code).inc()
        yield orjson.dumps({"error": found.problem(), "through": through, **totals}) + b"\n"


def _progress_lines(result: BatchResult, through: int, *, ids: bool) -> bytes:
    """Return the refused lines of a batch, followed by its progress line."""
    refusals: list[dict[str, Any]] = []
    for line, error in result.refused:
        metrics.REFUSED.labels(code=error.code).inc()
        refusals.append({"line": line, "error": error.problem()})
    counts = {"created": result.created, "changed": result.changed, "ended": result.ended}
    counts |= {"repeated": result.repeated, "refused": len(result.refused)}
    progress: dict[str, Any] = {"through": through, **counts, "sequence": result.sequence}
    if ids:
        progress["ids"] = result.ids
    return b"".join(orjson.dumps(one) + b"\n" for one in (*refusals, progress))


def _count(result: BatchResult, name: str) -> int:
    found = getattr(result, name)
    return len(found) if isinstance(found, list) else int(found)


async def _authorized(request: BulkRequest) -> Principal:
    """Authorize the caller again for each batch: its key may expire meanwhile."""
    found = await request.authorizer.authenticate(request.credential)
    if request.session is None:
        return found
    return await request.authorizer.through(found, request.session)


def _parse_options(call: Call) -> BulkOptions:
    found = call.query()
    if found.get("ids", "false") not in ("true", "false"):
        raise InvalidField("This is `true` or `false`.", field="ids")
    client = found.get("client")
    action = dict(call.scope["headers"]).get(b"eventhub-action")
    return BulkOptions(
        None if client is None else valid_name(client, field="client"),
        found.get("ids") == "true",
        action_id(None if action is None else action.decode("latin-1")),
    )


def _read(zone: str, texts: list[NumberedLine]) -> list[Line]:
    addresses = callback_addresses(zone)
    return [read_line(number, text, addresses) for number, text in texts]


def _apply(principal: Principal, options: BulkOptions, lines: Sequence[Line]) -> BatchResult:
    actor = Actor(principal.zone_id, principal.zone, principal)
    with replying(options.action):
        return apply_lines(actor=actor, owner=_owner(principal, options), lines=lines)


def _owner(principal: Principal, options: BulkOptions) -> Owner:
    actor = Actor(principal.zone_id, principal.zone, principal)
    return owner(actor=actor, name=options.client)


async def _in_thread(work: Callable[..., Any], *args: Any) -> Any:
    """Run `work` in one of the route's threads, in the request's context, and close its connection
    afterwards.
    """
    run = copy_context().run
    return await asyncio.get_running_loop().run_in_executor(_THREADS, run, _closing, work, *args)


def _closing(work: Callable[..., Any], *args: Any) -> Any:
    try:
        return work(*args)
    except EventHubError:
        raise
    except Exception as error:
        raise as_error(error) from error
    finally:
        connection.close()
