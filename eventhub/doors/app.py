"""The hot doors as one ASGI application in front of Django: what no door takes goes on. Plain."""

from collections.abc import Awaitable, Callable

from eventhub import metrics
from eventhub.access.gate import Gate
from eventhub.doors.http import (
    Answer,
    Disconnected,
    Receive,
    Scope,
    Send,
    problem_answer,
    send_answer,
)
from eventhub.doors.table import DOORS, Call, Door
from eventhub.errors import EventHubError
from eventhub.eventlog.log import Log
from eventhub.logs import get_logger

log = get_logger(__name__)
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]


class Doors:
    """Answers the doors' requests, passes all others to `inner`."""

    def __init__(self, inner: AsgiApp, *, hub_log: Log, gate: Gate, redis_url: str) -> None:
        self._inner = inner
        self._log = hub_log
        self._gate = gate
        self._redis_url = redis_url
        self._routes = [(door.method, door.pattern(), door) for door in DOORS]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method, path = scope["method"], scope["path"]
        for route_method, pattern, door in self._routes:
            if method == route_method and (found := pattern.fullmatch(path)):
                call = Call(self._log, self._gate, self._redis_url, scope, receive, found.groups())
                await self._answer(door, call, send)
                return
        await self._inner(scope, receive, send)

    async def _answer(self, door: Door, call: Call, send: Send) -> None:
        try:
            answer = await _run(door, call)
        except Disconnected:
            return
        metrics.REQUESTS.labels(door=door.path, status=str(answer.status)).inc()
        await send_answer(send, answer)


async def _run(door: Door, call: Call) -> Answer:
    try:
        return await door.run(call)
    except EventHubError as error:
        if error.status == 500:
            log.error("door_failed", door=door.path, code=error.code, detail=error.message)
        return problem_answer(error, door.path)
    except Disconnected:
        raise
    except Exception:
        log.exception("door_failed", door=door.path)
        return problem_answer(EventHubError(), door.path)
