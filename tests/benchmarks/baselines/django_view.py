"""A stock Django async view that does the same append: same group commit, no key, no checks."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from eventhub.base.env import read_env
from eventhub.event import event_pb2
from eventhub.eventlog.drafts import Draft
from eventhub.eventlog.log import Log

MASK = 1 << 63
_log: Log


@asynccontextmanager
async def open_log() -> AsyncIterator[None]:
    global _log
    env = read_env()
    async with Log.open(database_url=env.database_url, direct_url=env.database_direct_url) as _log:
        yield


@csrf_exempt
async def emit(request: HttpRequest, stream_id: int) -> JsonResponse:
    event = json.loads(request.body)
    payload = event_pb2.Event(
        domain=event["domain"],
        type=event["type"],
        attributes=json.dumps(event["attributes"]).encode(),
        node=event["node"],
        body=json.dumps(event["body"]).encode(),
        content_type="application/json",
        mask=MASK,
    ).SerializeToString()
    [placed] = await _log.append([Draft(stream_id, MASK, payload)])
    response = JsonResponse({"segment": placed.segment, "sequence": placed.sequence})
    response["Content-Length"] = str(len(response.content))  # CommonMiddleware's work, if absent
    return response
