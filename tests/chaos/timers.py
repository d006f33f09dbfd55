"""The command `python -m tests.chaos timers`: a million timers of which 10,000 are due within one
second, several times, while forwarders are killed; with `--delayed`, delayed events, which are
emitted while the web process is killed. See docs/chaos.md, "Timers".
"""

import argparse
import asyncio
import random
import signal
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import LiteralString, NamedTuple

import aiohttp
import orjson

from eventhub.event import protobuf_codec
from tests.chaos import report
from tests.chaos.hub import Crew, HubUnderTest, send_signal
from tests.chaos.until import NeverCame, until_true

FORWARDERS = ("forward-1", "forward-2")
HARM = {"calm": 0, "one": 1, "all": len(FORWARDERS)}  # forwarders that are killed in a burst
BEFORE_S = 5.0  # from the last preparation to the first burst
PERIOD_S = 15.0  # from one burst to the next; a forwarder that was killed starts in a few seconds
PATIENCE_S = 120.0
BODY_EVENTS = 1_000  # delayed events of one emit
EMITS_AT_ONCE = 3
RETRY_S = 0.2
WEB_KILLS = 3
INSERT: LiteralString = """
    INSERT INTO timers (zone_id, client_id, stream_id, handle, at, next_at, due_at, created_at)
    SELECT s.zone_id, c.id, s.id, %(name)s || n, due.at, due.at, due.at, now()
      FROM streams s JOIN clients c ON c.zone_id = s.zone_id AND c.name = %(client)s,
           generate_series(0, %(count)s - 1) AS n,
           LATERAL (SELECT to_timestamp(%(first)s + n * %(step)s) AS at) AS due
     WHERE s.name = %(stream)s"""
COUNT: LiteralString = """
    INSERT INTO timer_counts (client_id, zone_id, timers)
    SELECT client_id, zone_id, count(*) FROM timers GROUP BY client_id, zone_id
    ON CONFLICT (client_id) DO UPDATE SET timers = excluded.timers"""
LEFT: LiteralString = "SELECT count(*) FROM timers WHERE next_at < to_timestamp(%s)"
FIRED: LiteralString = """
    SELECT e.payload, extract(epoch FROM e.appended_at)::float8
      FROM streams s JOIN segments g ON g.stream_id = s.id JOIN events e ON e.segment_id = g.id
     WHERE s.name = %s"""


class Series(NamedTuple):
    """Timers to create: `count` from a time on, named by their number."""

    name: str
    client: str
    count: int
    first_s: float
    step_s: float


class Burst(NamedTuple):
    """Timers that are due within one second, and how late their events were appended."""

    number: int
    harm: str
    timers: int
    lost: int
    repeated: int
    p50_s: float
    p99_s: float
    worst_s: float
    problems: list[str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--timers", type=int, default=1_000_000, help="not due during the run")
    parser.add_argument("--due", type=int, default=10_000, help="timers of a burst, in one second")
    parser.add_argument("--bursts", type=int, default=9)
    parser.add_argument("--delayed", action="store_true", help="delayed events, not timers")


async def run(options: argparse.Namespace, data: Path) -> int:
    """Run all bursts, then read the log. Return the exit status."""
    dice = random.Random(options.seed)
    print(f"seed {options.seed}, data {data}", flush=True)
    hub = HubUnderTest(data, Crew(web=1, forwarders=len(FORWARDERS)))
    try:
        await hub.ready()
        prepared_s = await _prepare(hub, options)
        harms = [[*HARM][number % len(HARM)] for number in range(options.bursts)]
        first_s = await _insert_bursts(hub, options)
        for number, harm in enumerate(harms):
            await _harm(hub, harm, first_s + number * PERIOD_S + dice.random(), dice)
        problems = await _wait_fired(hub, first_s + options.bursts * PERIOD_S)
        found = await _judge(hub, options, harms, first_s)
    finally:
        hub.stop()
    for one in found:
        print(_line(one), flush=True)
    problems += [problem for one in found for problem in one.problems]
    summary = {
        "seed": options.seed,
        "timers": options.timers,
        "due": options.due,
        "inserted_s": prepared_s,
        "bursts": [one._asdict() for one in found],
    }
    return report.end(options.json, summary, problems)


async def _prepare(hub: HubUnderTest, options: argparse.Namespace) -> float:
    """Create the stream and the timers that are not due; return the seconds that they took."""
    key = hub.create_key("clock")
    async with (
        aiohttp.ClientSession(hub.url, headers={"Authorization": f"Bearer {key}"}) as session,
        session.put("/v1/streams/ticks", json={}) as answer,
    ):
        answer.raise_for_status()
    began_s = time.monotonic()
    year_s = 365 * 24 * 3_600.0
    step_s = year_s / max(options.timers, 1)
    later = Series("later-", "clock", options.timers, time.time() + 24 * 3_600, step_s)
    killing = asyncio.create_task(_kill_web(hub)) if options.delayed else None
    await _create(hub, options, [later])
    if killing is not None:
        await killing
    return time.monotonic() - began_s


async def _insert_bursts(hub: HubUnderTest, options: argparse.Namespace) -> float:
    """Create the timers of all bursts; return the time of the first one."""
    first_s = float(int(time.time() + BEFORE_S + options.bursts * options.due / 5_000))
    series = [
        Series(f"burst-{n}-", "bell", options.due, first_s + n * PERIOD_S, 1 / options.due)
        for n in range(options.bursts)
    ]
    hub.create_key("bell")
    await _create(hub, options, series)
    return first_s


async def _create(hub: HubUnderTest, options: argparse.Namespace, series: Sequence[Series]) -> None:
    if not options.delayed:
        await asyncio.to_thread(_insert, hub, series)
        return
    key = hub.create_key(series[0].client)
    waiting = [body for one in series for body in _bodies(one)][::-1]
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {key}"}) as session:

        async def emit() -> None:
            while waiting:
                body = waiting.pop()
                if not await _emitted(session, f"{hub.url}/v1/streams/ticks/events", body):
                    waiting.append(body)
                    await asyncio.sleep(RETRY_S)

        await asyncio.gather(*(emit() for _ in range(EMITS_AT_ONCE)))
    with hub.connect_plainly() as connection:
        connection.execute("ANALYZE timers")


def _bodies(one: Series) -> list[bytes]:
    found = []
    for first in range(0, one.count, BODY_EVENTS):
        numbers = range(first, min(first + BODY_EVENTS, one.count))
        found.append(orjson.dumps([_event(one, number) for number in numbers]))
    return found


def _event(one: Series, number: int) -> dict[str, object]:
    at = datetime.fromtimestamp(one.first_s + number * one.step_s, UTC).isoformat()
    name = f"{one.name}{number}"
    attributes = {"handle": name}
    return {"domain": "d", "type": "t", "id": name, "attributes": attributes, "deliver_at": at}


async def _emitted(session: aiohttp.ClientSession, url: str, body: bytes) -> bool:
    """Emit a request; return False if it has to be repeated."""
    headers = {"Content-Type": "application/json"}
    try:
        async with session.post(url, data=body, headers=headers) as answer:
            if answer.status >= 500:
                return False
            answer.raise_for_status()
            found = await answer.json()
    except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError):
        return False
    if found["ranges"]:
        raise RuntimeError("an event was stored at once: the machine is too slow for this series")
    return True


async def _kill_web(hub: HubUnderTest) -> None:
    """Kill the web process while delayed events are emitted."""
    for _ in range(WEB_KILLS):
        await asyncio.sleep(BEFORE_S)
        [pid] = hub.pids(["web-1"])
        send_signal([pid], signal.SIGKILL)


def _insert(hub: HubUnderTest, series: Sequence[Series]) -> None:
    with hub.connect_plainly() as connection:
        for name, client, count, first_s, step_s in series:
            values = {"name": name, "client": client, "stream": "ticks", "count": count}
            connection.execute(INSERT, {**values, "first": first_s, "step": step_s})
        connection.execute(COUNT)
        connection.execute("ANALYZE timers")
        connection.execute("SELECT pg_notify('eventhub_timers', '')")


async def _harm(hub: HubUnderTest, harm: str, at_s: float, dice: random.Random) -> None:
    """Kill forwarders at a time."""
    await asyncio.sleep(max(at_s - time.time(), 0.0))
    chosen = dice.sample(FORWARDERS, HARM[harm])
    send_signal(hub.pids(chosen), signal.SIGKILL)


async def _wait_fired(hub: HubUnderTest, until_s: float) -> list[str]:
    async def none_left() -> bool:
        [[left]] = await hub.rows(LEFT, until_s)
        return bool(left == 0)

    try:
        await until_true(none_left, "all bursts", PATIENCE_S)
    except NeverCame as error:
        return [str(error)]
    return []


async def _judge(
    hub: HubUnderTest, options: argparse.Namespace, harms: Sequence[str], first_s: float
) -> list[Burst]:
    rows = await asyncio.to_thread(_fired, hub)
    fires: Counter[str] = Counter()
    late_s: list[list[float]] = [[] for _ in harms]
    for payload, appended_s in rows:
        handle = str(protobuf_codec.decode(bytes(payload)).attributes["handle"])
        fires[handle] += 1
        _, burst, number = handle.split("-")
        due_s = first_s + int(burst) * PERIOD_S + int(number) / options.due
        late_s[int(burst)].append(appended_s - due_s)
    [[counted]] = await hub.rows("SELECT COALESCE(sum(timers), 0)::bigint FROM timer_counts")
    [[rows_left]] = await hub.rows("SELECT count(*) FROM timers")
    found = []
    for number, harm in enumerate(harms):
        handles = [f"burst-{number}-{n}" for n in range(options.due)]
        lost = sum(fires[one] == 0 for one in handles)
        repeated = sum(fires[one] > 1 for one in handles)
        problems = [f"burst {number}: {lost} lost, {repeated} repeated"] if lost or repeated else []
        if {counted, rows_left} != {options.timers} and number == 0:
            found_text = f"{rows_left} timers are left, {counted} counted"
            problems.append(f"{found_text}, not {options.timers}")
        late = sorted(late_s[number]) or [0.0]
        at = [late[int((len(late) - 1) * share)] for share in (0.5, 0.99, 1.0)]
        found.append(Burst(number, harm, options.due, lost, repeated, *at, problems))
    return found


def _fired(hub: HubUnderTest) -> list[tuple[bytes, float]]:
    with hub.connect_plainly() as connection:
        return connection.execute(FIRED, ("ticks",)).fetchall()


def _line(one: Burst) -> str:
    return (
        f"burst {one.number:>2}  killed {one.harm:<5}{one.timers:>8} timers  lost {one.lost}"
        f"  repeated {one.repeated}  late p50 {one.p50_s * 1e3:>6.0f} ms"
        f"  p99 {one.p99_s * 1e3:>6.0f} ms  worst {one.worst_s * 1e3:>6.0f} ms"
        f"  {report.verdict(one.problems)}"
    )
