"""A client with timers, under a clock that the test drives."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

from eventhub.base.clock import ManualClock
from eventhub.event import protobuf_codec
from eventhub.event.envelope import Event
from eventhub.postgresql.connections import connect
from registrations.timers.firing import fire_due
from tests.integration.access_world import EVERYTHING, ApiCaller, caller_with
from tests.integration.committed_world import database, sql


class TimersWorld:
    """A client with the stream `alarms`, and a clock at `start`, an hour from now."""

    def __init__(self) -> None:
        self.start = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
        self.clock = ManualClock(int(self.start.timestamp() * 1e6))
        self.caller = caller_with(*EVERYTHING)
        assert self.caller.put("/v1/streams/alarms", {}).status_code == 201
        self.passed_s = 0.0

    def at(self, seconds: float) -> str:
        return (self.start + timedelta(seconds=seconds)).isoformat()

    def create(self, handle: str, caller: ApiCaller | None = None, **fields: Any) -> dict[str, Any]:
        body = {"stream": "alarms", "handle": handle, **fields}
        answer = (caller or self.caller).post("/v1/timers", body)
        assert answer.status_code == 201, answer.content
        created: dict[str, Any] = answer.json()
        return created

    def register(self, **fields: Any) -> int:
        answer = self.caller.post("/v1/registrations", {"streams": ["alarms"], **fields})
        assert answer.status_code == 201, answer.content
        return int(answer.json()["id"])

    def handles(self, query: str = "") -> list[str]:
        return [one["handle"] for one in self.caller.get(f"/v1/timers{query}").json()["items"]]

    def fire(self) -> int:
        async def once() -> int:
            async with await connect(database(), name="test") as session:
                return await fire_due(session, self.clock)

        return asyncio.run(once())

    def fires_until(self, seconds: int) -> list[int]:
        """Let the seconds pass one by one; return those in which events were appended."""
        found = []
        while self.passed_s < seconds:
            self.clock.advance_s(1)
            self.passed_s += 1
            before = len(events())
            self.fire()
            found += [int(self.passed_s)] * (len(events()) - before)
        return found


def events(stream: str = "alarms") -> list[Event]:
    rows = sql(
        "SELECT e.payload FROM events e JOIN segments g ON g.id = e.segment_id"
        " JOIN streams s ON s.id = g.stream_id WHERE s.name = %s ORDER BY g.id, e.sequence",
        stream,
    )
    return [protobuf_codec.decode(bytes(payload)) for (payload,) in rows]


def ticks() -> list[tuple[str, int, int]]:
    """Return the handle, the number and the missed times of each tick."""
    found = [one.attributes for one in events()]
    return [(one["handle"], one["number"], one["missed"]) for one in found]


def counted() -> list[int]:
    [[rows]] = sql("SELECT count(*) FROM timers")
    [[numbers]] = sql("SELECT COALESCE(sum(timers), 0) FROM timer_counts")
    return [rows, int(numbers)]
