"""For producers in Python: which events surely nobody wants, decided where they are made (OIF-09).
Plain module.

    async with HubClient(url, key) as hub, Quench(hub, "debug") as quench:
        receipt = await hub.emit("debug", event, suppress=quench)

The closure of the stream is kept current over a websocket. What it lets through is sent at once,
without a question. What it does not is left out only when the hub has confirmed since that the
closure is still the same, so an interest that was there before `emit` was called is honoured. While
nothing is known, or the stream's setting `quench` is off, everything is sent.
"""

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import Any, NamedTuple

import aiohttp
import orjson

from eventhub.base import limits
from eventhub.base.errors import EventHubError
from eventhub.event.envelope import Event
from eventhub_client.errors import RETRY, refusal
from eventhub_client.listening import UNREACHABLE, pause_s
from eventhub_client.remote import HubClient
from eventhub_client.sources import open_socket, require_open
from eventhub_client.types import HubProblem
from registrations.filters.closure.shapes import Shape, interest_in, shape_of
from registrations.filters.closure.union import Closure
from registrations.filters.languages import parse
from registrations.filters.normal import NormalForm, normal

_NAME = "quench"


class _Known(NamedTuple):
    """The stream's closure as the hub told it last."""

    closure: Closure
    above: dict[tuple[str, str], tuple[str, ...]]
    quench: bool
    tag: str

    @classmethod
    def of(cls, message: dict[str, Any]) -> "_Known":
        forms: list[NormalForm] = [
            normal(parse("predicate", text).node) for text in message["alternatives"]
        ]
        closure = Closure(tuple(parts for form in forms for parts in form), message["widened"])
        above = {(at["domain"], at["type"]): tuple(at["above"]) for at in message["above"]}
        return cls(closure, above, message["quench"], message["tag"])

    def surely_unwanted(self, shape: Shape) -> bool:
        return self.quench and interest_in(self.closure, shape, self._hierarchy) == "no"

    def _hierarchy(self, event: Event) -> tuple[str, ...]:
        return (event.type, *self.above.get((event.domain, event.type), ()))


class Quench:
    """Decides for one stream. `audience`: the groups of clients whom the events are for, if they
    have one. `age_s`: for how long a confirmation counts; with 0, what is left out is confirmed
    anew, one small message and its answer for all emits that wait. With 1.0 nothing is asked within
    a second, and an interest may be missed that is younger than that.
    """

    def __init__(
        self, hub: HubClient, stream: str, *, audience: Sequence[str] = (), age_s: float = 0.0
    ) -> None:
        self.stream = stream
        self.suppressed = 0  # events that were not sent
        self._hub = hub
        self._audience = list(audience)
        self._age_s = age_s
        self._known: _Known | None = None
        self._confirmed_s = float("-inf")  # of the loop's clock: when the question was sent
        self._attempt = 0
        self._waiting: list[asyncio.Future[bool]] = []
        self._question: _Question | None = None
        self._asking = asyncio.Event()
        self._told = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._problem: HubProblem | None = None

    async def __aenter__(self) -> "Quench":
        """Begin; the closure is known, or the hub away, when it returns. Raises HubProblem for what
        trying again does not mend.
        """
        self._task = asyncio.create_task(self._run())
        await self._told.wait()
        if self._problem is not None:
            await self.__aexit__(None, None, None)
            raise self._problem
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._lost()

    async def wanted(self, stream: str, events: Sequence[dict[str, Any]]) -> list[bool]:
        """For each event False if surely nobody wants it; of another stream nothing is known."""
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
        return [not _unwanted(known, event) for event in events]

    async def _confirm(self, asked_s: float) -> bool:
        """True if what is known is the truth of that moment, or young enough."""
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
        """Connect, again and again, until cancelled or refused for good."""
        while True:
            try:
                await self._connected()
            except UNREACHABLE:
                pass
            except HubProblem as error:
                if error.status not in RETRY:
                    self._problem = error
                    return
            finally:
                self._lost()
                self._told.set()
            await asyncio.sleep(pause_s(self._attempt))
            self._attempt += 1

    async def _connected(self) -> None:
        """Be told over one connection. Raises HubProblem, and what aiohttp raises."""
        async with open_socket(self._hub.http) as socket:
            ask: dict[str, Any] = {"op": "interest", "interest": _NAME, "stream": self.stream}
            if self._audience:
                ask["audience"] = self._audience
            await socket.send_bytes(orjson.dumps(ask))
            asking = asyncio.create_task(self._ask(socket))
            try:
                async for frame in socket:
                    if frame.type is not aiohttp.WSMsgType.TEXT:
                        break
                    self._take(orjson.loads(frame.data))
            finally:
                asking.cancel()
                await asyncio.gather(asking, return_exceptions=True)
            require_open(socket)

    async def _ask(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        """Ask for all who wait, one question at a time."""
        while True:
            await self._asking.wait()
            self._asking.clear()
            waiting, self._waiting = self._waiting, []
            question = _Question(asyncio.get_running_loop().time(), waiting, asyncio.Event())
            self._question = question
            await socket.send_bytes(orjson.dumps({"op": "still", "interest": _NAME}))
            await question.answered.wait()

    def _take(self, message: dict[str, Any]) -> None:
        """One message of the hub. Raises HubProblem for a refusal."""
        op = message["op"]
        if op == "interest":
            self._attempt = 0
            self._know(message)
        elif op == "still":
            known = self._known
            self._answer(same=known is not None and known.tag == message["tag"])
        elif op == "error" and message.get("interest") == _NAME:
            if self._question is None or message["status"] not in RETRY:
                raise refusal(message)
            self._answer(same=False)

    def _know(self, message: dict[str, Any]) -> None:
        try:
            self._known = _Known.of(message)
        except EventHubError:  # of a hub that knows another language: everything is sent
            self._known = None
        self._told.set()

    def _answer(self, *, same: bool) -> None:
        question, self._question = self._question, None
        if question is None:
            return
        if same:
            self._confirmed_s = question.asked_s
        question.answer(same=same)

    def _lost(self) -> None:
        """Nothing is known without a connection."""
        self._known = None
        self._confirmed_s = float("-inf")
        self._answer(same=False)
        waiting, self._waiting = self._waiting, []
        _Question(0.0, waiting, asyncio.Event()).answer(same=False)


class _Question(NamedTuple):
    """One question, when it was asked, and who waits for the answer."""

    asked_s: float
    waiting: list[asyncio.Future[bool]]
    answered: asyncio.Event

    def answer(self, *, same: bool) -> None:
        self.answered.set()
        for one in self.waiting:
            if not one.done():  # else its owner has gone
                one.set_result(same)


def _unwanted(known: _Known, event: dict[str, Any]) -> bool:
    try:
        return known.surely_unwanted(shape_of(event))
    except EventHubError:
        return False  # a wrong event: the hub says what is wrong with it
