"""One registration while events flow: created, usually changed, deleted; its promised bounds, and
the deliveries.
"""

import asyncio
import random
from collections.abc import Sequence
from typing import Any, LiteralString, NamedTuple

import aiohttp

from tests.chaos.callbacks.arrivals import Arrivals, Key
from tests.chaos.callbacks.harm import kill, leader
from tests.chaos.callbacks.oracle import Version, expected, remainders_of
from tests.chaos.callbacks.receivers import ask
from tests.chaos.events import DOMAIN, SIZES
from tests.chaos.exact.flow import STREAM, Flow
from tests.chaos.exact.listening import Listening
from tests.chaos.hub import HubUnderTest
from tests.chaos.until import NeverCame, until

PARALLEL = ("one", "two")
LANE = "lane"
LIFE_S = (0.05, 0.25)
PATIENCE_S = 60.0
SHOWN = 8

END: LiteralString = """
    SELECT b.sequences[array_position(b.streams, s.id)]
      FROM registration_versions v JOIN barriers b ON b.id = v.until_barrier, streams s
     WHERE v.registration_id = %s AND s.name = %s
     ORDER BY v.number DESC LIMIT 1"""


class Scene(NamedTuple):
    """What all trials share. `endpoints`: ids by name."""

    hub: HubUnderTest
    http: aiohttp.ClientSession
    flow: Flow
    arrivals: Arrivals
    endpoints: dict[str, int]


class Script(NamedTuple):
    """The steps of a trial. `endpoint`: its name; `change`: the body of a PATCH, None for no
    change.
    """

    number: int
    endpoint: str
    filter: dict[str, Any]
    change: dict[str, Any] | None
    harmed: bool  # the leading forwarder is killed
    resumes: bool  # the listener goes away and comes back


class Found(NamedTuple):
    """The result of a trial."""

    script: Script
    versions: list[Version]
    expected_rows: dict[Key, list[int]]  # what must arrive, with its registrations
    victim: str
    problems: list[str]


def script_of(number: int, dice: random.Random) -> Script:
    """Draw a script: two of four suffer a fault; most are changed to fewer, more or other events.
    One of five has an ordered lane, which delivers one event at a time and so gets few.
    """
    here, there = PARALLEL[:: 1 if number % 2 else -1]
    everything: dict[str, Any] = {"domain": DOMAIN}
    narrow = {"attributes": {"size": dice.randrange(SIZES)}}
    kinds: tuple[tuple[str, dict[str, Any], dict[str, Any] | None], ...] = (
        (here, everything, narrow),
        (here, {**everything, **narrow}, {"attributes": None}),
        (here, everything, {"endpoint": there}),
        (here, everything, None),
        (LANE, {**everything, **narrow}, None),
    )
    endpoint, filter, change = kinds[(number + number // 4 * 3) % len(kinds)]
    return Script(
        number=number,
        endpoint=endpoint,
        filter=filter,
        change=change,
        harmed=number % 4 >= 2,
        resumes=dice.random() < 0.4,
    )


class Trial:
    """One trial, to be run once."""

    def __init__(self, scene: Scene, script: Script, dice: random.Random) -> None:
        self._scene = scene
        self._script = script
        self._dice = dice
        self._problems: list[str] = []
        self._versions: list[Version] = []
        self._victim = ""

    async def run(self) -> Found:
        scene, script = self._scene, self._script
        before = scene.flow.last
        body = {"streams": [STREAM], "endpoint": scene.endpoints[script.endpoint], **script.filter}
        made = await self._ask("POST", "", body)
        since = self._bound(made, before[1])
        listening = Listening(scene.hub.url, made["id"], before)
        reading = asyncio.create_task(listening.run(scene.http))
        harming = asyncio.create_task(self._harm())
        try:
            await until(listening.began.is_set, "the listen", PATIENCE_S)
            await self._live(made, since, listening)
            await harming
            expected_rows = await self._arrived(since)
            await asyncio.wait_for(reading, PATIENCE_S)
        except (NeverCame, TimeoutError) as error:
            self._problems.append(f"{error!r}")
            expected_rows = self._expected_rows()
        finally:
            reading.cancel()
        self._problems += listening.problems
        sequences = sorted(sequence for _, _, sequence in expected_rows)
        self._problems += _differ("the listen", sequences, listening.seen)
        return Found(script, self._versions, expected_rows, self._victim, self._problems)

    async def _live(self, made: dict[str, Any], since: int, listening: Listening) -> None:
        """Follow the registration from its creation to its end, in one version or two."""
        script, endpoint = self._script, made["endpoint"]
        filter, number = script.filter, 1
        await asyncio.sleep(self._dice.uniform(*LIFE_S))
        if script.change is not None:
            before = self._scene.flow.last[1]
            given = dict(script.change)
            if "endpoint" in given:
                given["endpoint"] = self._scene.endpoints[given["endpoint"]]
            changed = await self._ask("PATCH", f"/{made['id']}", given)
            until_ = self._bound(changed, before)
            self._note(made["id"], number, (since, until_), (filter, endpoint))
            since, number, endpoint = until_, 2, changed["endpoint"]
            filter = {**filter, **script.change}
        if script.resumes:
            await listening.drop()
        await asyncio.sleep(self._dice.uniform(*LIFE_S))
        # who comes back after the end is refused: there is no such registration any more
        await until(listening.began.is_set, "the resumed listen", PATIENCE_S)
        before = self._scene.flow.last[1]
        await self._ask("DELETE", f"/{made['id']}", None)
        [(end,)] = await self._scene.hub.rows(END, made["id"], STREAM)
        if end < before:
            self._problems.append(f"it ended at {end}, and {before} was acknowledged before that")
        self._note(made["id"], number, (since, end), (filter, endpoint))

    def _note(
        self, id: int, number: int, bound: tuple[int, int], what: tuple[dict[str, Any], int]
    ) -> None:
        filter = {name: value for name, value in what[0].items() if name != "endpoint"}
        bounds: dict[str, tuple[int, int | None]] = {STREAM: bound}
        self._versions.append(Version(0, id, number, bounds, remainders_of(filter), what[1]))

    async def _harm(self) -> None:
        if self._script.harmed:
            await asyncio.sleep(self._dice.uniform(0, LIFE_S[1] * 2))
            part = await leader(self._scene.hub, self._dice, STREAM)
            self._victim = await kill(part)(self._scene.hub, self._dice)

    async def _arrived(self, since: int) -> dict[Key, list[int]]:
        """Wait until every expected delivery has arrived."""
        end = max(version.bounds[STREAM][1] or 0 for version in self._versions)
        flow, firsts = self._scene.flow, self._scene.arrivals.firsts

        def known() -> bool:
            return len(flow.events) >= end and -1 not in flow.events[since:end]

        await until(known, "the answers of all events of the trial", PATIENCE_S)
        expected_rows = self._expected_rows()
        await until(
            lambda: all(key in firsts for key in expected_rows),
            f"{len(expected_rows)} deliveries",
            PATIENCE_S,
        )
        return expected_rows

    def _expected_rows(self) -> dict[Key, list[int]]:
        return expected_keys(self._versions, self._scene)

    def _bound(self, answer: dict[str, Any], before: int) -> int:
        """Return the sequence after which a version is in force; check that it is not below what
        was acknowledged before.
        """
        sequence = int(answer["from"][STREAM]["sequence"])
        if sequence < before:
            self._problems.append(f"it holds from {sequence}, but {before} was known before")
        return sequence

    async def _ask(self, method: str, path: str, body: Any) -> dict[str, Any]:
        url = f"{self._scene.hub.url}/v1/registrations{path}"
        found: dict[str, Any] = await ask(self._scene.http, method, url, body)
        return found


def expected_keys(versions: Sequence[Version], scene: Scene) -> dict[Key, list[int]]:
    """Return the deliveries that follow from the versions, in the sink's form."""
    names = {id: name for name, id in scene.endpoints.items()}
    begin = min((version.bounds[STREAM][0] for version in versions), default=0)
    end = max((version.bounds[STREAM][1] or 0 for version in versions), default=0)
    events = scene.flow.events[begin:end]
    return {
        (names[endpoint], STREAM, sequence): registrations
        for (endpoint, sequence), registrations in expected(
            versions, STREAM, begin + 1, events
        ).items()
    }


def _differ(who: str, expected_rows: list[int], seen: list[int]) -> list[str]:
    if expected_rows == seen:
        return []
    missing = sorted(set(expected_rows) - set(seen))
    strange = sorted(set(seen) - set(expected_rows))
    return [
        f"{who}: {len(seen)} events instead of {len(expected_rows)}, missing {missing[:SHOWN]}, "
        f"not asked for {strange[:SHOWN]}, in order: {seen == sorted(seen)}"
    ]
