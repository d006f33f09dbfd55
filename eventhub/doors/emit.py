"""POST /v1/streams/{stream}/events: parse, authorise, append, answer after the commit.

Plain: no Django, no SQL.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

from eventhub import metrics
from eventhub.access.gate import Gate
from eventhub.access.principal import Principal
from eventhub.doors.http import Answer, Receive, Scope, read_body, read_head
from eventhub.errors import EventHubError, Forbidden, UnknownChannel
from eventhub.event.inbound import EventIn, IdIn, event_mask, parse, stored_bytes
from eventhub.eventlog.drafts import Appended, Draft, Producer
from eventhub.eventlog.log import Log


class Emitted(NamedTuple):
    """Where the events of one request are: runs of new numbers, and the events that were there
    before.
    """

    stream: str
    ranges: list[tuple[str, int, int]]  # segment, first, last
    duplicates: list[tuple[int, str, int]]  # index in the request, segment, sequence

    def json(self) -> dict[str, Any]:
        return {
            "stream": self.stream,
            "ranges": [{"segment": s, "first": f, "last": e} for s, f, e in self.ranges],
            "duplicates": [
                {"index": i, "segment": s, "sequence": n} for i, s, n in self.duplicates
            ],
        }


async def emit(
    log: Log, gate: Gate, principal: Principal, stream: str, events: Sequence[EventIn]
) -> Emitted:
    """Append the events of one request, all or none (EMC-03); every other error refuses the request
    whole.

    Raises Forbidden, UnknownStream, BadRequest's kin with the event's index, and what Log.append
    raises.
    """
    if stream == "system":
        raise Forbidden("Only the hub itself writes to the stream `system`.")
    principal.require("emit", stream)
    stream_id = await gate.stream_id(principal, stream)
    drafts = []
    for index, event in enumerate(events):
        try:
            drafts.append(await _draft(gate, principal, stream_id, event))
        except EventHubError as error:
            error.index = index
            raise
    appended = await log.append(drafts)
    return _emitted(stream, appended)


async def _draft(gate: Gate, principal: Principal, stream_id: int, event: EventIn) -> Draft:
    mask = event_mask(event)
    if isinstance(mask, list):
        try:
            mask = await gate.mask(principal.zone_id, mask)
        except UnknownChannel as error:
            error.field = "channels"
            raise
    producer = None
    if isinstance(event.id, IdIn):
        producer = Producer(principal.client_id, event.id.incarnation, event.id.sequence)
    payload = stored_bytes(event, client=principal.client, mask=mask)
    return Draft(stream_id, mask, payload, producer, event.key, event.tombstone)


def _emitted(stream: str, appended: list[Appended]) -> Emitted:
    ranges: list[tuple[str, int, int]] = []
    duplicates: list[tuple[int, str, int]] = []
    for index, (_, segment, sequence, duplicate) in enumerate(appended):
        if duplicate:
            duplicates.append((index, segment, sequence))
        elif ranges and ranges[-1][0] == segment and ranges[-1][2] == sequence - 1:
            ranges[-1] = (segment, ranges[-1][1], sequence)
        else:
            ranges.append((segment, sequence, sequence))
    if duplicates:
        metrics.DUPLICATES.inc(len(duplicates))
    return Emitted(stream, ranges, duplicates)


async def emit_door(log: Log, gate: Gate, scope: Scope, receive: Receive, stream: str) -> Answer:
    """The door: credentials before the body, so that strangers cannot make the hub read."""
    head = read_head(scope["headers"])
    principal = await gate.authorise(head.credential)
    principal.require("emit", stream)
    body = await read_body(receive, head.content_length)
    emitted = await emit(log, gate, principal, stream, parse(body, head.content_type))
    return Answer(200, orjson.dumps(emitted.json()), [])
