"""The judge of callbacks, at any moment and at rest."""

import asyncio
import time
from collections.abc import Mapping
from typing import LiteralString

import psycopg

from tests.chaos.callbacks.arrivals import Arrivals, Key
from tests.chaos.callbacks.changes import Change, changes_wrong
from tests.chaos.callbacks.expected import ExpectedDeliveries
from tests.chaos.callbacks.tables import Shot, shoot
from tests.chaos.hub import HubUnderTest
from tests.chaos.judge import shorten
from tests.chaos.until import NeverCame, until_true

# the longest time without an arrival while deliveries are expected: longer than claims, and than
# the pauses of a circuit
STILL_S = 330.0
DRAIN_S = 1_200.0
AWAY_S = 60.0

STATES: LiteralString = """
    SELECT state, count(*), sum(attempts)::bigint FROM deliveries GROUP BY state ORDER BY state"""
BEHIND: LiteralString = """
    SELECT (SELECT count(*) FROM deliveries WHERE state = 'pending')
         + (SELECT count(*) FROM fanouts)
         + (SELECT count(*) FROM forwarding f JOIN heads h USING (stream_id)
             WHERE f.sequence < h.sequence AND f.stream_id <> 1)"""
# One pass, despite stale statistics of tables that were filled a moment ago.
UNTRIED: LiteralString = """
    WITH attempted AS (
        SELECT endpoint_id, segment_id, sequence, stream_id, attempts, NULL::integer AS number,
               NULL AS outcome
          FROM deliveries WHERE state = 'delivered'
        UNION ALL
        SELECT endpoint_id, segment_id, unnest(COALESCE(sequences, ARRAY[sequence])), NULL, NULL,
               number, outcome
          FROM attempts
    )
    SELECT (SELECT name FROM streams WHERE id = max(stream_id)) AS stream, endpoint_id, sequence,
           max(attempts) AS attempts, count(number) AS tries, count(DISTINCT number) AS numbers,
           count(*) FILTER (WHERE outcome = 'delivered') AS good
      FROM attempted GROUP BY endpoint_id, segment_id, sequence
    HAVING max(attempts) IS NOT NULL
       AND (count(*) FILTER (WHERE outcome = 'delivered') <> 1 OR count(number) <> max(attempts)
            OR count(DISTINCT number) <> count(number))
     LIMIT 20"""


class CallbackJudge:
    """Compares tables and sink with what is expected, from where they were last found right.
    `endpoints`: ids by name.
    """

    def __init__(
        self, hub: HubUnderTest, streams: tuple[str, ...], endpoints: Mapping[str, int]
    ) -> None:
        self.expected = ExpectedDeliveries(streams)
        self._hub = hub
        self._endpoints = dict(endpoints)
        self._unjudged: dict[Key, None] = {}
        self._landed = 0
        self._changes = 0

    def add_endpoints(self, endpoints: Mapping[str, int]) -> None:
        """Judge further endpoints, too."""
        self._endpoints.update(endpoints)

    async def judge(self, arrivals: Arrivals, changes: list[Change]) -> list[str]:
        """Return what is wrong at this moment; PostgreSQL may be unavailable for a while."""
        arrivals.read_on()
        landed = list(arrivals.firsts)[self._landed :]  # before the snapshot: it knows their rows
        asked = changes[self._changes :]
        shot = await self._shoot()
        problems = await asyncio.to_thread(self.expected.judge, shot)
        problems += changes_wrong(asked, shot.versions, shot.filters)
        self._landed += len(landed)
        self._changes += len(asked)
        problems += self.arrivals_wrong(arrivals, landed)
        return [*arrivals.taken_problems(), *problems]

    async def rest(self, arrivals: Arrivals, changes: list[Change]) -> list[str]:
        """Judge at rest: wait until everything is delivered, and report what is not."""
        problems = []
        try:
            await self._drain(arrivals)
        except NeverCame as error:
            problems.append(f"{error}: {await self._hub.rows(STATES)}")
        problems += await self.judge(arrivals, changes)
        problems += [f"the arrival of {key} is not in the log" for key in self._unjudged]
        problems += self.missing(arrivals)
        problems += await self._tables_wrong()
        return problems

    def missing(self, arrivals: Arrivals) -> list[str]:
        """Return the expected deliveries that were never accepted."""
        names = {id: name for name, id in self._endpoints.items()}
        missing = [
            f"{stream} {sequence} never reached {names.get(endpoint, endpoint)}"
            for endpoint, stream, sequence in self.expected.expected
            if (names.get(endpoint, ""), stream, sequence) not in arrivals.taken
        ]
        return shorten(missing)

    async def _shoot(self) -> Shot:
        found: list[Shot] = []

        async def shot() -> bool:
            try:
                found.append(await asyncio.to_thread(shoot, self._hub, self.expected.known))
            except (psycopg.Error, OSError, TimeoutError):
                await asyncio.sleep(0.2)
            return bool(found)

        await until_true(shot, "a snapshot of the tables", AWAY_S)
        return found[0]

    def arrivals_wrong(self, arrivals: Arrivals, landed: list[Key]) -> list[str]:
        """Return arrivals that are not expected, or have other registrations. `landed`: what
        arrived since the last time. Arrivals beyond the checkpoint are judged again later.
        """
        self._unjudged.update(dict.fromkeys(landed))
        known = self.expected.known
        problems = []
        for key in [key for key in self._unjudged if key[2] <= known.get(key[1], 0)]:
            endpoint, stream, sequence = key
            first = arrivals.firsts[key]
            registrations = self.expected.expected.get(
                (self._endpoints.get(endpoint, 0), stream, sequence)
            )
            if registrations is None:
                problems.append(f"{stream} {sequence} reached {endpoint}, which did not ask for it")
            elif registrations != first.registrations:
                problems.append(f"{key} came for {first.registrations} instead of {registrations}")
            elif self.expected.segments[stream][sequence - 1] != first.segment:
                problems.append(f"{key} came with the segment {first.segment}")
            del self._unjudged[key]
        problems += [  # of the next event some deliveries may be there already
            f"{stream} {sequence} reached {endpoint}, and the checkpoint is {known.get(stream, 0)}"
            for endpoint, stream, sequence in self._unjudged
            if sequence > known.get(stream, 0) + 1
        ]
        return shorten(problems)

    async def _drain(self, arrivals: Arrivals) -> None:
        """Wait for the last delivery as long as some arrive. Raise NeverCame."""
        count, moved_at = 0, time.monotonic()

        async def drained() -> bool:
            nonlocal count, moved_at
            arrivals.read_on()
            if len(arrivals.taken) != count:
                count, moved_at = len(arrivals.taken), time.monotonic()
            if time.monotonic() - moved_at > STILL_S:
                raise NeverCame(f"nothing was delivered for {STILL_S:.0f} s, and some are expected")
            await asyncio.sleep(0.3)
            try:
                [(behind,)] = await self._hub.rows(BEHIND)
            except (psycopg.Error, OSError, TimeoutError):
                return False
            return bool(behind == 0)

        await until_true(drained, "the last delivery", DRAIN_S)

    async def _tables_wrong(self) -> list[str]:
        states = {state: count for state, count, _ in await self._hub.rows(STATES)}
        problems = [
            f"{count} deliveries are {state}"
            for state, count in states.items()
            if state != "delivered"
        ]
        if states.get("delivered", 0) != len(self.expected.expected):
            problems.append(f"{states} deliveries, {len(self.expected.expected)} expected")
        what = "stream, endpoint, sequence, attempts, rows, numbers, good"
        problems += [
            f"delivered, but the attempts are others ({what}): {row}"
            for row in await self._hub.rows(UNTRIED)
        ]
        return shorten(problems)
