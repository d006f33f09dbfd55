"""The command `python -m tests.chaos patterns`: patterns in several groups over a steady flow of
events, while forwarders are killed; the outputs must be those of one uninterrupted run of the
engines over the events in the order that the groups recorded. See docs/chaos.md, "Patterns".
"""

import argparse
import asyncio
import random
import signal
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, LiteralString, NamedTuple

import aiohttp

from eventhub.event import protobuf_codec
from eventhub.event.envelope import Event
from registrations.pattern_groups.consumed import ConsumedRun
from registrations.pattern_groups.definition import parse_text
from registrations.pattern_groups.engine import HubEngine, HubPattern
from registrations.patterns.pattern_engine import EventPosition, Match
from tests.chaos import report
from tests.chaos.hub import Crew, HubUnderTest, send_signal
from tests.chaos.until import NeverCame, until, until_true

FORWARDERS = ("forward-1", "forward-2")
STREAMS = ("left", "right")
GROUPS = 4
BATCH_S = 0.05  # between two requests of the emitter
PER_REQUEST = 1_000  # patterns
PATIENCE_S = 180.0
TEXTS = (
    ("ready", "{{a: A | $k == {k}}}; {{b: B | $k == {k}}} per $u"),
    ("ready", "{{v[3..3]: A | $k == {k}}} where sum(v.n) >= 0"),
    ("ready", "({{a: A | $k == {k}}} && {{b: B | $k == {k}}}) where a.u == b.u last 50"),
    (
        "temporal",
        "(event (u ?u) (n ?n1) (where (and (= k {k}) (= @type 'A))))"
        " (event (u ?u) (n ?n2) (where (and (= k {k}) (= @type 'B)))) (test (< ?n1 ?n2))",
    ),
)
# The journal is deleted with each snapshot; the run keeps a copy of both.
KEEP: LiteralString = """
    CREATE TABLE kept_journal (LIKE pattern_journal);
    CREATE TABLE kept_states (group_id bigint, position bigint, state bytea);
    CREATE FUNCTION keep_journal() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN INSERT INTO kept_journal VALUES (NEW.*); RETURN NEW; END';
    CREATE FUNCTION keep_state() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN INSERT INTO kept_states VALUES (NEW.group_id, NEW.position, NEW.state); RETURN NEW; END';
    CREATE TRIGGER keep_journal AFTER INSERT ON pattern_journal FOR EACH ROW
    EXECUTE FUNCTION keep_journal();
    CREATE TRIGGER keep_state AFTER INSERT OR UPDATE ON pattern_states FOR EACH ROW
    EXECUTE FUNCTION keep_state()"""
JOURNAL: LiteralString = """
    SELECT first, streams, segments::text[], firsts, lasts FROM kept_journal WHERE group_id = %s"""
STATES: LiteralString = "SELECT state FROM kept_states WHERE group_id = %s"
CONSUMED: LiteralString = """
    SELECT count(*) FROM pattern_leases l, unnest(l.streams, l.sequences) AS c (stream_id, sequence)
      JOIN heads h USING (stream_id) WHERE c.sequence < h.sequence"""
STORED: LiteralString = """
    SELECT g.stream_id, g.uuid::text, e.sequence, e.payload,
           (extract(epoch FROM e.appended_at) * 1000000)::bigint
      FROM streams s JOIN segments g ON g.stream_id = s.id JOIN events e ON e.segment_id = g.id
     WHERE s.name = %s ORDER BY e.sequence"""
VERSIONS: LiteralString = """
    SELECT v.group_id, v.pattern_id, v.id, v.language, v.text
      FROM pattern_versions v ORDER BY v.id"""


class KillRound(NamedTuple):
    """A round: how long nothing was consumed after the kill, and what was wrong."""

    number: int
    killed: int
    behind_s: float


class StoredOne(NamedTuple):
    """An event of a stream."""

    stream: int
    segment: str
    sequence: int
    event: Event
    at_us: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--patterns", type=int, default=5_000)
    parser.add_argument("--rate", type=float, default=2_000.0, help="events per second")
    parser.add_argument("--seconds-per-round", type=float, default=4.0)


async def run(options: argparse.Namespace, data: Path) -> int:
    """Run all rounds, then compare. Return the exit status."""
    dice = random.Random(options.seed)
    print(f"seed {options.seed}, data {data}", flush=True)
    hub = HubUnderTest(data, Crew(web=1, forwarders=len(FORWARDERS)))
    problems: list[str] = []
    rounds: list[KillRound] = []
    try:
        await hub.ready()
        key = hub.create_key("judge")
        headers = {"Authorization": f"Bearer {key}"}
        async with aiohttp.ClientSession(hub.url, headers=headers) as session:
            await _create(session, options.patterns)
            with hub.connect_plainly() as connection:
                connection.execute(KEEP)
            emitting = asyncio.create_task(_emit(session, options, random.Random(options.seed)))
            for number in range(1, options.rounds + 1):
                rounds.append(await _round(hub, number, options.seconds_per_round, dice))
                print(_line(rounds[-1]), flush=True)
            emitting.cancel()
            emitted, took_s = await _emitted(emitting)
        began_s = time.monotonic()
        problems += await _wait_consumed(hub)
        drained_s = time.monotonic() - began_s
        found = await asyncio.to_thread(_judge, hub)
        problems += found.pop("problems")
    finally:
        hub.stop()
    summary = {
        "seed": options.seed,
        "patterns": options.patterns,
        "rounds": len(rounds),
        "emitted": emitted,
        "events_per_s": round(emitted / took_s),
        "behind_s_max": max((one.behind_s for one in rounds), default=0.0),
        "drained_s": round(drained_s, 1),
        **found,
    }
    print(", ".join(f"{name} {value}" for name, value in summary.items()))
    return report.end(options.json, summary, problems)


async def _post(session: aiohttp.ClientSession, path: str, body: Any) -> None:
    async with session.post(path, json=body) as answer:
        if answer.status != 201:
            raise RuntimeError(f"{path}: {answer.status} {await answer.text()}")


async def _create(session: aiohttp.ClientSession, count: int) -> None:
    """Create the streams, the groups with a stream of outputs each, and the patterns."""
    names = [*STREAMS, *(f"out-{group}" for group in range(GROUPS))]
    for name in names:
        async with session.put(f"/v1/streams/{name}", json={}) as answer:
            answer.raise_for_status()
    for group in range(GROUPS):
        body = {"name": f"g{group}", "streams": [*STREAMS], "output_stream": f"out-{group}"}
        await _post(session, "/v1/pattern-groups", body)
    patterns = [
        {
            "group": f"g{number % GROUPS}",
            "name": f"p{number}",
            "language": TEXTS[number % len(TEXTS)][0],
            "text": TEXTS[number % len(TEXTS)][1].format(k=number // len(TEXTS)),
        }
        for number in range(count)
    ]
    for at in range(0, count, PER_REQUEST):
        await _post(session, "/v1/patterns", patterns[at : at + PER_REQUEST])


async def _emit(
    session: aiohttp.ClientSession, options: argparse.Namespace, dice: random.Random
) -> tuple[int, float]:
    """Emit at the rate until cancelled; return how many events, and the seconds."""
    began_s, sent = time.monotonic(), 0
    keys = max(options.patterns // len(TEXTS), 1)
    try:
        while True:
            due = int((time.monotonic() - began_s) * options.rate) - sent
            if due <= 0:
                await asyncio.sleep(BATCH_S)
                continue
            events = [
                {
                    "domain": "d",
                    "type": dice.choice("AB"),
                    "attributes": {
                        "k": dice.randrange(keys),
                        "u": dice.randrange(4),
                        "n": sent + n,
                    },
                }
                for n in range(min(due, 1_000))
            ]
            path = f"/v1/streams/{dice.choice(STREAMS)}/events"
            async with session.post(path, json=events) as answer:
                answer.raise_for_status()
            sent += len(events)
    except asyncio.CancelledError:
        return sent, time.monotonic() - began_s


async def _emitted(emitting: "asyncio.Task[tuple[int, float]]") -> tuple[int, float]:
    return await emitting


async def _round(hub: HubUnderTest, number: int, seconds: float, dice: random.Random) -> KillRound:
    """Let events flow, kill one or both forwarders, and wait until all groups move again."""
    await asyncio.sleep(seconds * dice.random())
    chosen = dice.sample(FORWARDERS, dice.choice((1, 1, 2)))
    await until(lambda: len(hub.pids(chosen)) == len(chosen), "the forwarders", PATIENCE_S)
    send_signal(hub.pids(chosen), signal.SIGKILL)
    killed_s = time.monotonic()
    before = await _positions(hub)

    async def moved() -> bool:
        now = await _positions(hub)
        return all(now[group] > position for group, position in before.items())

    await until_true(moved, "all groups to move", PATIENCE_S)
    return KillRound(number, len(chosen), time.monotonic() - killed_s)


async def _positions(hub: HubUnderTest) -> dict[int, int]:
    rows = await hub.rows("SELECT group_id, position FROM pattern_leases")
    return dict(rows)


async def _wait_consumed(hub: HubUnderTest) -> list[str]:
    """Wait until all events are consumed: as long as the groups go on, however far behind they are
    on a machine that has no time left for them.
    """
    while not await _are_consumed(hub):
        before = await _positions(hub)
        try:
            await until_true(partial(_go_on, hub, before), "events to be consumed", PATIENCE_S)
        except NeverCame as error:
            return [str(error)]
    return []


async def _are_consumed(hub: HubUnderTest) -> bool:
    [[behind]] = await hub.rows(CONSUMED)
    return bool(behind == 0)


async def _go_on(hub: HubUnderTest, before: dict[int, int]) -> bool:
    return await _positions(hub) != before or await _are_consumed(hub)


def _judge(hub: HubUnderTest) -> dict[str, Any]:
    """Compare each group's outputs with those of one run of its engines."""
    with hub.connect_plainly() as connection:
        versions = connection.execute(VERSIONS).fetchall()
        events = {name: _stored(connection, name) for name in STREAMS}
        outputs = {n: _stored(connection, f"out-{n}") for n in range(GROUPS)}
        groups = dict(connection.execute("SELECT name, id FROM pattern_groups").fetchall())
        consumed = {id: _consumed(connection, id) for id in groups.values()}
    stored = {(one.segment, one.sequence): one for name in STREAMS for one in events[name]}
    problems: list[str] = []
    compared = 0
    for number in range(GROUPS):
        group = groups[f"g{number}"]
        order = [stored[position] for _, position in sorted(consumed[group].items())]
        if len(order) != len(stored):
            problems.append(f"group {number}: {len(order)} of {len(stored)} events consumed")
        own = [
            (version, pattern, language, text)
            for of_group, pattern, version, language, text in versions
            if of_group == group
        ]
        expected = _uninterrupted(own, order)
        found = [_named(one.event) for one in outputs[number] if "bindings" in one.event.attributes]
        compared += len(expected)
        if found != expected:
            pairs = enumerate(zip(found, expected, strict=False))
            fewer = min(len(found), len(expected))
            at = next((n for n, pair in pairs if pair[0] != pair[1]), fewer)
            problems.append(
                f"group {number}: {len(found)} outputs, {len(expected)} expected; the first"
                f" difference is output {at}"
            )
    return {"outputs": compared, "problems": problems}


def _stored(connection: Any, name: str) -> list[StoredOne]:
    rows = connection.execute(STORED, (name,)).fetchall()
    return [
        StoredOne(stream, segment, sequence, protobuf_codec.decode(bytes(payload)), at_us)
        for stream, segment, sequence, payload, at_us in rows
    ]


def _consumed(connection: Any, group: int) -> dict[int, tuple[str, int]]:
    """Return the segment and sequence of each event that a group consumed, by its order number:
    of the journal, and of the snapshots, which have the last ones.
    """
    found: dict[int, tuple[str, int]] = {}

    def add(order: int, runs: Sequence[ConsumedRun]) -> None:
        for run in runs:
            for sequence in range(run.first, run.last + 1):
                assert found.setdefault(order, (run.segment, sequence)) == (run.segment, sequence)
                order += 1

    for first, *columns in connection.execute(JOURNAL, (group,)):
        add(first, [ConsumedRun(*run) for run in zip(*columns, strict=True)])
    for (state,) in connection.execute(STATES, (group,)):
        engine = HubEngine()
        engine.restore(bytes(state))
        add(engine.consumed.order - engine.consumed.count + 1, list(engine.consumed.runs))
    return found


def _uninterrupted(
    versions: Sequence[tuple[int, int, str, str]],
    order: Sequence[StoredOne],
) -> list[tuple[int, dict[str, list[tuple[str, int]]]]]:
    engine = HubEngine()
    patterns = {}
    for number, pattern, language, text in versions:
        patterns[number] = pattern
        engine.add(HubPattern(number, parse_text(language, text)))
    found = []
    for at, one in enumerate(order, 1):
        position = EventPosition(at, one.stream, one.segment, one.sequence, one.at_us)
        for output in engine.feed(position, one.event):
            if isinstance(output, Match):
                bound = {
                    name: [(each.segment, each.sequence) for each in value]  # type: ignore[union-attr]
                    for name, value in output.bindings.items()
                }
                found.append((patterns[output.pattern], bound))
    return found


def _named(event: Event) -> tuple[int, dict[str, list[tuple[str, int]]]]:
    values = event.attributes
    bound = {
        name: [(one["segment"], one["sequence"]) for one in positions]
        for name, positions in values["bindings"].items()
    }
    return values["pattern"], bound


def _line(one: KillRound) -> str:
    return (
        f"round {one.number:>3}  killed {one.killed}  all groups moved after {one.behind_s:.1f} s"
    )
