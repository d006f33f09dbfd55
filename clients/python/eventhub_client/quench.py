"""Quenching in the producer: skips events that certainly match no interest (OIF-09). Plain module.

    async with HubClient(url, key) as hub, Quench(hub, "debug") as quench:
        receipt = await hub.emit("debug", event, suppress=quench)

A websocket keeps the closure of the stream current. An event that the closure covers is sent at
once. An event that it does not cover is skipped only after the hub has confirmed that the closure
is unchanged, so an interest registered before the call of `emit` is honoured. Without a closure, or
if the stream's setting `quench` is off, every event is sent.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

import aiohttp
import orjson

from eventhub.base import limits
from eventhub.base.errors import EventHubError
from eventhub.event.envelope import Event
from eventhub_client.errors import RETRY, refusal
from eventhub_client.listening import UNREACHABLE, pause_s
from eventhub_client.remote import HubClient
from eventhub_client.transports import messages_of, open_socket
from eventhub_client.types import HubProblem
from registrations.filters.closure.shapes import Shape, interest_in, shape_of
from registrations.filters.closure.union import Closure
from registrations.filters.languages import parse
from registrations.filters.normal import NormalForm, normal

_NAME = "quench"


class _KnownClosure(NamedTuple):
    """The last closure of the stream that the hub sent."""

    closure: Closure
    supertypes: dict[tuple[str, str], tuple[str, ...]]
    quench: bool
    tag: str

    @classmethod
    def of(cls, message: dict[str, Any]) -> "_KnownClosure":
        forms: list[NormalForm] = [
            normal(parse("predicate", text).node) for text in message["alternatives"]
        ]
        closure = Closure(tuple(parts for form in forms for parts in form), message["widened"])
        supertypes = {
            (of["domain"], of["type"]): tuple(of["supertypes"]) for of in message["supertypes"]
        }
        return cls(closure, supertypes, message["quench"], message["tag"])

    def certainly_unmatched(self, shape: Shape) -> bool:
        return self.quench and interest_in(self.closure, shape, self._hierarchy) == "no"

    def _hierarchy(self, event: Event) -> tuple[str, ...]:
        return (event.type, *self.supertypes.get((event.domain, event.type), ()))


class Quench:
    """The quench of one stream. `audience`: the groups of clients that the events are restricted
    to, if they have one. `age_s`: how long a confirmation stays valid; with 0 each skipped event
    needs a new one, a small message and its answer for all waiting emits. With 1.0 an interest
    younger than a second may be missed.
    """

    def __init__(
        self, hub: HubClient, stream: str, *, audience: Sequence[str] = (), age_s: float = 0.0
    ) -> None:
        self.stream = stream
        self.suppressed = 0  # events that were not sent
        self._hub = hub
        self._audience = list(audience)
        self._age_s = age_s
        self._known: _KnownClosure | None = None
        self._confirmed_s = float("-inf")  # of the loop's clock: when the question was sent
        self._attempt = 0
        self._waiting: list[asyncio.Future[bool]] = []
        self._question: _Question | None = None
        self._asking = asyncio.Event()
        self._received = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._problem: HubProblem | None = None

    async def __aenter__(self) -> "Quench":
        """Start; return when the closure is known or the hub unreachable. Raises HubProblem if a
        retry cannot help.
        """
        self._task = asyncio.create_task(self._run())
        await self._received.wait()
        if self._problem is not None:
            await self.__aexit__()
            raise self._problem
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._lost()

    async def matched(self, stream: str, events: Sequence[dict[str, Any]]) -> list[bool]:
        """Return False for each event that certainly matches no interest."""
        if stream != self.stream:
            return [True] * len(events)
        asked_s = asyncio.get_running_loop().time()
        found = self._verdicts(events)
        if all(found) or not await self._confirm(asked_s):
            return [True] * len(events)
        found = self._verdicts(events)
        self.suppressed += found.count(False)
        return found

    def _verdicts(self, events: Sequence[dict[str, Any]]) -> list[bool]:
        known = self._known
        if known is None or not known.quench:
            return [True] * len(events)
        return [not _unmatched(known, event) for event in events]

    async def _confirm(self, asked_s: float) -> bool:
        """Return whether the known closure is current, or its confirmation recent enough."""
        if self._known is None:
            return False
        if asked_s - self._confirmed_s <= self._age_s:
            return True
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append(answer)
        self._asking.set()
        try:
            async with asyncio.timeout(limits.CLIENT_CONFIRM_S_MAX):
                return await answer
        except TimeoutError:
            return False

    async def _run(self) -> None:
        """Connect and reconnect until cancelled or refused for good."""
        while True:
            wait_s = None
            try:
                await self._connected()
            except UNREACHABLE:
                pass
            except HubProblem as error:
                if error.status not in RETRY:
                    self._problem = error
                    return
                wait_s = error.retry_after_s
            finally:
                self._lost()
                self._received.set()
            await asyncio.sleep(pause_s(self._attempt, wait_s))
            self._attempt += 1

    async def _connected(self) -> None:
        """Follow the closure over one connection. Raises HubProblem and aiohttp's errors."""
        async with open_socket(self._hub.http) as socket:
            ask: dict[str, Any] = {"op": "interest", "interest": _NAME, "stream": self.stream}
            if self._audience:
                ask["audience"] = self._audience
            await socket.send_bytes(orjson.dumps(ask))
            asking = asyncio.create_task(self._ask(socket))
            try:
                async for message in messages_of(socket):
                    self._take(message)
            finally:
                asking.cancel()
                await asyncio.gather(asking, return_exceptions=True)

    async def _ask(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        """Ask for confirmation for all waiting calls, one question at a time."""
        while True:
            await self._asking.wait()
            self._asking.clear()
            waiting, self._waiting = self._waiting, []
            question = _Question(asyncio.get_running_loop().time(), waiting, asyncio.Event())
            self._question = question
            await socket.send_bytes(orjson.dumps({"op": "confirm", "interest": _NAME}))
            await question.answered.wait()

    def _take(self, message: dict[str, Any]) -> None:
        """Handle a message of the hub. Raises HubProblem for a refusal."""
        op = message["op"]
        if op == "interest":
            self._attempt = 0
            self._know(message)
        elif op == "confirmed":
            known = self._known
            self._answer(same=known is not None and known.tag == message["tag"])
        elif op == "error" and message.get("interest") == _NAME:
            if self._question is None or message["status"] not in RETRY:
                raise refusal(message)
            self._answer(same=False)

    def _know(self, message: dict[str, Any]) -> None:
        try:
            self._known = _KnownClosure.of(message)
        except EventHubError:  # the hub uses another language: every event is sent
            self._known = None
        self._received.set()

    def _answer(self, *, same: bool) -> None:
        question, self._question = self._question, None
        if question is None:
            return
        if same:
            self._confirmed_s = question.asked_s
        question.answer(same=same)

    def _lost(self) -> None:
        """Forget the closure after the loss of the connection."""
        self._known = None
        self._confirmed_s = float("-inf")
        self._answer(same=False)
        waiting, self._waiting = self._waiting, []
        _Question(0.0, waiting, asyncio.Event()).answer(same=False)


class _Question(NamedTuple):
    """A question to the hub, its time, and the calls that wait for the answer."""

    asked_s: float
    waiting: list[asyncio.Future[bool]]
    answered: asyncio.Event

    def answer(self, *, same: bool) -> None:
        self.answered.set()
        for one in self.waiting:
            if not one.done():  # otherwise its caller was cancelled
                one.set_result(same)


def _unmatched(known: _KnownClosure, event: dict[str, Any]) -> bool:
    try:
        return known.certainly_unmatched(shape_of(event))
    except EventHubError:
        return False  # an invalid event: the hub reports the error
