"""POST /v1/registrations/bulk: lines in, lines out, both while the other one goes on.
Django module.

It runs on the event loop and has pieces stored in threads of its own. What waits is bounded by one
piece: more of the body is read only when the last piece is stored and its answer is taken.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import orjson
from django.db import connection

from eventhub.access.actor import Actor
from eventhub.access.authorizer import Authorizer
from eventhub.access.keys import is_key
from eventhub.access.names import valid_name
from eventhub.access.principal import Principal
from eventhub.api.problems import as_error
from eventhub.api.replies import action_id, replying
from eventhub.base import limits, metrics
from eventhub.base.errors import (
    EventHubError,
    InvalidCredentials,
    InvalidField,
    UnknownField,
    UnsupportedMediaType,
)
from eventhub.event.inbound import NDJSON
from eventhub.http.messages import Disconnected, Headers, StreamingResponse, read_head
from eventhub.http.routes import Call
from registrations.bulk.chunks import Pieces, Text
from registrations.bulk.lines import Line, read_line
from registrations.bulk.services import Applied, apply_lines
from registrations.endpoints.services import callback_addresses
from registrations.owners import Owner, owner

_THREADS = ThreadPoolExecutor(limits.BULK_THREADS, "bulk")


class Asked(NamedTuple):
    """What a request asks for beside its lines."""

    client: str | None
    tickets: bool  # each new registration's is told
    action: str


class Visit(NamedTuple):
    """A caller whose lines are being taken."""

    authorizer: Authorizer
    credential: str
    asked: Asked


async def bulk_door(call: Call) -> StreamingResponse:
    """Raises Unauthenticated's kin, UnsupportedMediaType, UnknownField, InvalidField, Disconnected,
    and for another one's client Forbidden and NotFound.
    """
    head = read_head(call.scope["headers"])
    if head.content_type != NDJSON:
        raise UnsupportedMediaType(f"Lines are sent as {NDJSON}.")
    asked = _asked(call.scope)
    visit = Visit(call.authorizer, head.credential, asked)
    await _in_thread(_owner, await _authorised(visit), asked)
    pieces = Pieces(call.incoming)
    await pieces.begin()  # before the answer begins: whoever waits for a go-ahead has it now
    headers: Headers = [
        (b"cache-control", b"no-store"),
        (b"eventhub-action", asked.action.encode()),
    ]
    return StreamingResponse(200, _answer(visit, pieces), headers, NDJSON.encode(), pieces.close)


async def _answer(visit: Visit, pieces: Pieces) -> AsyncGenerator[bytes, None]:
    """Progress, refusals, and at the end whether that was all."""
    totals = dict.fromkeys(("created", "changed", "ended", "repeated", "refused"), 0)
    through = 0
    try:
        while texts := await pieces.next():
            lines: Sequence[Line] = await _in_thread(_read, texts)
            while lines:
                principal = await _authorised(visit)
                applied = await _in_thread(_apply, principal, visit.asked, lines)
                through = lines[applied.lines - 1].number
                lines = lines[applied.lines :]
                for name in totals:
                    totals[name] += _count(applied, name)
                yield _told(applied, through, tickets=visit.asked.tickets)
        yield orjson.dumps({"done": True, "through": through, **totals}) + b"\n"
    except Disconnected:
        return
    except Exception as error:
        found = as_error(error)
        metrics.REFUSED.labels(code=found.code).inc()
        yield orjson.dumps({"error": found.problem(), "through": through, **totals}) + b"\n"


def _told(applied: Applied, through: int, *, tickets: bool) -> bytes:
    """The refused lines, then how far all is stored."""
    told: list[dict[str, Any]] = []
    for line, error in applied.refused:
        metrics.REFUSED.labels(code=error.code).inc()
        told.append({"line": line, "error": error.problem()})
    counts = {"created": applied.created, "changed": applied.changed, "ended": applied.ended}
    counts |= {"repeated": applied.repeated, "refused": len(applied.refused)}
    progress: dict[str, Any] = {"through": through, **counts, "sequence": applied.sequence}
    if tickets:
        progress["tickets"] = applied.tickets
    return b"".join(orjson.dumps(one) + b"\n" for one in (*told, progress))


def _count(applied: Applied, name: str) -> int:
    found = getattr(applied, name)
    return len(found) if isinstance(found, list) else int(found)


async def _authorised(visit: Visit) -> Principal:
    """The caller, asked anew for each piece: its key may end meanwhile."""
    if not is_key(visit.credential):
        raise InvalidCredentials("This door takes API keys only.")
    return await visit.authorizer.authenticate(visit.credential)


def _asked(scope: Any) -> Asked:
    found: dict[str, str] = {}
    for name, value in parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True):
        if name not in ("client", "tickets"):
            raise UnknownField("This query parameter is not known here.", field=name[:100])
        found[name] = value
    if found.get("tickets", "false") not in ("true", "false"):
        raise InvalidField("This is `true` or `false`.", field="tickets")
    client = found.get("client")
    action = dict(scope["headers"]).get(b"eventhub-action")
    return Asked(
        None if client is None else valid_name(client, field="client"),
        found.get("tickets") == "true",
        action_id(None if action is None else action.decode("latin-1")),
    )


def _read(texts: list[Text]) -> list[Line]:
    addresses = callback_addresses()
    return [read_line(number, text, addresses) for number, text in texts]


def _apply(principal: Principal, asked: Asked, lines: Sequence[Line]) -> Applied:
    actor = Actor(principal.zone_id, principal.zone, principal)
    with replying(asked.action):
        return apply_lines(actor=actor, owner=_owner(principal, asked), lines=lines)


def _owner(principal: Principal, asked: Asked) -> Owner:
    actor = Actor(principal.zone_id, principal.zone, principal)
    return owner(actor=actor, name=asked.client)


async def _in_thread(work: Callable[..., Any], *args: Any) -> Any:
    """In one of the door's threads, whose connection is given back afterwards."""
    return await asyncio.get_running_loop().run_in_executor(_THREADS, _closing, work, *args)


def _closing(work: Callable[..., Any], *args: Any) -> Any:
    try:
        return work(*args)
    except EventHubError:
        raise
    except Exception as error:
        raise as_error(error) from error
    finally:
        connection.close()
