"""Registrations that are created, changed and deleted while events flow, through the public API;
and the bounds that the hub promised for them.

Every change records what was known before its request (the events acknowledged until then) and the
hub's response. So a judge that trusts neither the bounds in the tables nor those in the responses
can compare them.
"""

import asyncio
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import aiohttp
import orjson

from tests.chaos.callbacks.oracle import Version
from tests.chaos.events import CITIES, COLORS, DOMAIN, SIZES
from tests.chaos.journal import Journal
from tests.chaos.judge import shorten

ALIVE_MAX = 8
PAUSE_S = (0.05, 0.6)
LIFE_STEPS = ("patch-filter", "patch-filter", "patch-streams", "patch-endpoint", "delete", "delete")
TIMEOUT_S = 30.0


class Change(NamedTuple):
    """An acknowledged change: version `number` of a registration started (or, `ends`, its last one
    ended). `before`: by stream, the last sequence acknowledged when the change was requested.
    """

    registration: int
    number: int
    streams: tuple[str, ...]
    filter: dict[str, Any]
    endpoint: int | None
    since: dict[str, int]  # by stream: what the answer said; empty when it ended
    before: dict[str, int]
    ends: bool = False


class Live(NamedTuple):
    """A registration as its last response showed it."""

    id: int
    version: int
    streams: tuple[str, ...]
    filter: dict[str, Any]
    endpoint: int | None


class ChangeTarget(NamedTuple):
    """Where changes are made. `endpoints`: ids to choose from; `kept`: registrations to leave
    alone.
    """

    url: str
    key: str
    streams: tuple[str, ...]
    endpoints: Sequence[int]
    kept: frozenset[int]


class Registrar:
    """A task that changes registrations. `run` continues until cancelled; `paused` suspends it."""

    def __init__(self, place: ChangeTarget, journal: Journal, dice: random.Random) -> None:
        self.changes: list[Change] = []
        self.counts: dict[str, int] = {}  # by what was done, or by how it failed
        self.problems: list[str] = []
        self.going = asyncio.Event()
        self._place = place
        self._kept = set(place.kept)
        self._journal = journal
        self._dice = dice
        self._live: dict[int, Live] = {}
        self._doubtful = True  # an answer was lost: look what there is
        self.idle = asyncio.Event()

    def keep(self, registrations: Iterable[int]) -> None:
        """Leave further registrations alone."""
        self._kept.update(registrations)

    async def run(self) -> None:
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
        headers = {"Authorization": f"Bearer {self._place.key}"}
        async with aiohttp.ClientSession(headers=headers, timeout=timeout) as http:
            while True:
                self.idle.set()
                await self.going.wait()
                self.idle.clear()
                if self._doubtful:
                    await self._look(http)
                else:
                    await self._step(http)
                await asyncio.sleep(self._dice.uniform(*PAUSE_S))

    async def _step(self, http: aiohttp.ClientSession) -> None:
        if len(self._live) < ALIVE_MAX * self._dice.uniform(0.3, 1):
            await self._create(http)
            return
        chosen = self._live[self._dice.choice(sorted(self._live))]
        what = self._dice.choice(LIFE_STEPS)
        if what == "delete":
            await self._delete(http, chosen)
        else:
            await self._patch(http, chosen, what)

    async def _create(self, http: aiohttp.ClientSession) -> None:
        bodies = [self._random_body() for _ in range(self._dice.choice((1, 1, 1, 2, 3)))]
        before = dict(self._journal.highest)
        answer = await self._ask(http, "POST", "", bodies if len(bodies) > 1 else bodies[0])
        if answer is None:
            return
        made = answer["items"] if len(bodies) > 1 else [answer]
        for request_body, item in zip(bodies, made, strict=True):
            self._began(item, request_body, before)

    async def _patch(self, http: aiohttp.ClientSession, live: Live, what: str) -> None:
        if what == "patch-filter":
            given = {"attributes": None, "domain": None, "type": "tick", **self._filter()}
        elif what == "patch-streams":
            given = {"streams": self._streams()}
        else:
            given = {"endpoint": self._dice.choice([*self._place.endpoints, None])}
        before = dict(self._journal.highest)
        answer = await self._ask(http, "PATCH", f"/{live.id}", given)
        if answer is None:
            return
        if answer["version"] == live.version:
            return  # it was so already
        filter = {n: v for n, v in {**live.filter, **given}.items() if v is not None}
        request_body = {"streams": live.streams, "endpoint": live.endpoint, **filter, **given}
        self._began(answer, request_body, before)

    async def _delete(self, http: aiohttp.ClientSession, live: Live) -> None:
        before = dict(self._journal.highest)
        answer = await self._ask(http, "DELETE", f"/{live.id}", None)
        if answer is None:
            return
        del self._live[live.id]
        since: dict[str, int] = {}
        self.changes.append(
            Change(live.id, live.version, live.streams, live.filter, live.endpoint, since, before,
                   ends=True)
        )  # fmt: skip

    def _began(
        self, item: dict[str, Any], request_body: Mapping[str, Any], before: dict[str, int]
    ) -> None:
        filter = {
            n: request_body[n]
            for n in ("domain", "type", "attributes")
            if request_body.get(n) is not None
        }
        live = _live(item, filter)
        since = {stream: place["sequence"] for stream, place in item["from"].items()}
        self._live[live.id] = live
        matches_request = (tuple(request_body["streams"]), request_body.get("endpoint"))
        if (live.streams, live.endpoint) != matches_request or since.keys() != set(live.streams):
            self.problems.append(f"requested {request_body}, got {item}")
        change = Change(live.id, live.version, live.streams, filter, live.endpoint, since, before)
        self.changes.append(change)
        self._journal.note("registration", **change._asdict())

    async def _look(self, http: aiohttp.ClientSession) -> None:
        """Read the registrations after a response was lost."""
        answer = await self._ask(http, "GET", "?limit=1000", None)
        if answer is None:
            return
        self._doubtful = False
        there = [item for item in answer["items"] if item["id"] not in self._kept]
        self._live = {item["id"]: _live(item, _filter_of(item)) for item in there}

    async def _ask(
        self, http: aiohttp.ClientSession, method: str, path: str, body: Any
    ) -> dict[str, Any] | None:
        """Return the response; None if there was none, or 503: then the outcome is unknown."""
        url = f"{self._place.url}/v1/registrations{path}"
        try:
            async with http.request(method, url, json=body) as response:
                text, status = await response.read(), response.status
        except (aiohttp.ClientError, TimeoutError) as error:
            self._failed(method, type(error).__name__)
            return None
        if status < 300:
            self._count(f"{method} {status}")
            return orjson.loads(text) if text else {}
        self._failed(method, str(status))
        if status != 503:
            self.problems.append(f"{method} {path} {body}: {status} {text[:300]!r}")
        return None

    def _failed(self, method: str, how: str) -> None:
        self._count(f"{method} {how}")
        self._doubtful = True

    def _count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    # --- random registrations ---

    def _random_body(self) -> dict[str, Any]:
        endpoint = self._dice.choice(self._place.endpoints)
        return {"streams": self._streams(), "endpoint": endpoint, "type": "tick", **self._filter()}

    def _streams(self) -> list[str]:
        return self._dice.sample(self._place.streams, self._dice.choice((1, 1, 2)))

    def _filter(self) -> dict[str, Any]:
        """Return a filter for about one in twelve events: mostly two pairs, by value, number or
        path.
        """
        dice = self._dice
        size: float = dice.randrange(SIZES)
        pairs: dict[str, Any] = {"color": dice.choice(COLORS), "place.city": dice.choice(CITIES)}
        if dice.random() < 0.5:
            pairs = {"size": dice.choice((size, float(size)))}
        return {"attributes": pairs, **({"domain": DOMAIN} if dice.random() < 0.3 else {})}


def _live(item: Mapping[str, Any], filter: dict[str, Any]) -> Live:
    return Live(item["id"], item["version"], tuple(item["streams"]), filter, item["endpoint"])


def _filter_of(item: Mapping[str, Any]) -> dict[str, Any]:
    return {n: item[n] for n in ("domain", "type", "attributes") if item.get(n)}


def changes_wrong(
    changes: Sequence[Change], versions: Sequence[Version], filters: Mapping[int, dict[str, Any]]
) -> list[str]:
    """Return where the tables differ from what the hub acknowledged, or a bound is before an event
    acknowledged earlier.
    """
    by_number = {(version.registration, version.number): version for version in versions}
    problems = []
    for change in changes:
        version = by_number.get((change.registration, change.number))
        at = f"registration {change.registration}, version {change.number}"
        if version is None:
            problems.append(f"{at} was acknowledged and is nowhere")
        elif change.ends:
            problems += _end_wrong(at, change, version)
        else:
            problems += _begin_wrong(at, change, version, filters[version.id])
    return shorten(problems)


def _begin_wrong(at: str, change: Change, version: Version, stored: Mapping[str, Any]) -> list[str]:
    problems = []
    since = {stream: bound[0] for stream, bound in version.bounds.items()}
    if since != change.since:
        problems.append(f"{at} holds from {since}, the answer said {change.since}")
    given = {name: value for name, value in stored.items() if value is not None}
    if given != change.filter or version.endpoint != change.endpoint:
        problems.append(f"{at} is stored as {stored} for {version.endpoint}: {change}")
    for stream, sequence in since.items():
        if sequence < change.before.get(stream, 0):
            problems.append(f"{at} begins at {stream} {sequence}, before it was asked: {change}")
    return problems


def _end_wrong(at: str, change: Change, version: Version) -> list[str]:
    problems = []
    for stream, (_, until) in version.bounds.items():
        if until is None:
            problems.append(f"{at} was deleted and goes on")
        elif until < change.before.get(stream, 0):
            problems.append(f"{at} ended at {stream} {until}, before it was asked: {change}")
    return problems
