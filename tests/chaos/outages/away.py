"""The command `python -m tests.chaos outage`: see docs/chaos.md, "Outages"."""

import argparse
import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, LiteralString, NamedTuple

from eventhub.base import limits
from sparkjobs.report.plot import PlotLabels, PlotSeries
from tests.chaos import report
from tests.chaos.callbacks.receivers import Endpoint
from tests.chaos.callbacks.sink import Mood
from tests.chaos.figures import draw, per_second
from tests.chaos.judge import shorten
from tests.chaos.outages.clock import Hours
from tests.chaos.outages.recovery import Recovered, recover, recovery_wrong
from tests.chaos.outages.scene import Scene, Tenant
from tests.chaos.until import NeverCame

FAILS = Mood(status_500=1.0)
WELL = Mood()
AWAY, DOWN, GONE = "away", "down", "gone"  # refuses connections; answers 500; answers 500 for good
HOUR_S = 3_600.0
# by the driven clock, until everything has arrived: a probe comes within five minutes, and with its
# success what failed before is due
RETURN_S_MAX = 2 * limits.CALLBACK_CIRCUIT_S_MAX
BUCKET_S = 10
DIE_HOURS_MAX = 130  # the last retries of a default schedule come after 112
EXHAUST_S = 70.0  # withheld deliveries are searched for once a minute, by the machine's clock
SAMPLES = 20  # deliveries of which every attempt is read
PENDING: LiteralString = """
    SELECT e.id, count(d.endpoint_id) FROM endpoints e
      LEFT JOIN deliveries d ON d.endpoint_id = e.id AND d.state = 'pending'
     WHERE e.id = ANY (%s) GROUP BY e.id"""

# those that the hub's search would find now
WITHHELD: LiteralString = """
    SELECT count(*),
           count(*) FILTER (WHERE (d.ordered OR d.next_attempt_at <= now())
                              AND d.created_at < now() - total.s
                              AND c.failed_at - c.failing_since >= total.s)
      FROM (SELECT make_interval(secs => %s) AS s) AS total, deliveries d
      LEFT JOIN circuits c ON c.endpoint_id = d.endpoint_id
     WHERE d.state = 'pending' AND d.endpoint_id = ANY (%s)"""


class Plan(NamedTuple):
    """The course of a run. `schedule`: the retries of the endpoints that are gone for good; None:
    the default, of 75 hours. `step_s`: the shortest step of the clock; `every_h`: hours from one
    emit to the next.
    """

    hours: int
    events: int  # to the endpoints that return, each time
    gone: int  # events to those that do not
    schedule: Sequence[int] | None
    step_s: float
    every_h: int = 1


class Outage(NamedTuple):
    """The measurements. Times in seconds by the driven clock."""

    emitted: dict[str, int]
    requests: dict[str, int]  # by endpoint, while it was away
    pending: dict[str, list[int]]  # by tenant, before each emit but the first, and at the end
    accepted: list[float]  # in each ten seconds since the return
    returned_s: dict[str, float]  # by endpoint, from the return to the last acceptance
    gone_s: float  # until the last delivery was a dead letter
    recovered: Recovered


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--hours", type=int, default=26, help="of absence, by the driven clock")
    parser.add_argument("--events", type=int, default=200, help="an hour, to each that returns")
    parser.add_argument("--gone", type=int, default=5_000, help="events to those that do not")
    parser.add_argument("--step", type=float, default=300.0, help="of the clock, in s, at least")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="SVG")


def tenants(schedule: Sequence[int] | None, absent_url: str) -> list[Tenant]:
    """Return those with endpoints that return, and one with endpoints that do not."""

    def three(name: str, retries: Sequence[int] | None, mood: Mood, url: str) -> Tenant:
        kinds = {
            f"{name}-parallel": Endpoint(),
            f"{name}-by-stream": Endpoint(ordered=True),
            f"{name}-by-key": Endpoint(ordered=True, order_by="color"),
        }
        return Tenant(
            name,
            {
                each: one._replace(retry_schedule=retries, mood=mood, url=url and f"{url}/e/{each}")
                for each, one in kinds.items()
            },
        )

    return [
        three(AWAY, None, WELL, absent_url),
        three(DOWN, None, FAILS, ""),
        three(GONE, schedule, FAILS, ""),
    ]


async def run(options: argparse.Namespace, data: Path) -> int:
    """Run, judge and print. Return the exit status."""
    plan = Plan(options.hours, options.events, options.gone, None, options.step)
    async with Scene.open(data, lambda url: tenants(None, url), options.seed) as scene:
        found = await outage(scene, plan)
        problems = await judged(scene, found)
    show(found, plan)
    if options.plot is not None:
        plot(options.plot, found)
    return report.end(options.json, {"seed": options.seed, **found._asdict()}, problems)


async def outage(scene: Scene, plan: Plan) -> Outage:
    """Let receivers be away for hours, return, and others be away for good."""
    await scene.sink.switch(scene.places[AWAY].http, away=True)
    gone = list(scene.places[GONE].ids.values())
    began_s = scene.clock.ahead_s
    await scene.fill(GONE, plan.gone)
    pending = await _absence(scene, plan)
    requests = {
        name: len(times)
        for stream in (AWAY, DOWN, GONE)
        for name in scene.places[stream].ids
        if (times := scene.arrivals.requests.get(name))
    }
    back_s, accepted = await _return(scene)
    await _die(scene, Hours(scene.clock, gone, plan.step_s), plan.schedule)
    gone_s = scene.clock.ahead_s - began_s
    recovered = await recover(scene, GONE, WELL)
    return Outage(
        emitted={AWAY: len(pending[AWAY]) * plan.events, GONE: plan.gone},
        requests=requests,
        pending=pending,
        accepted=accepted,
        returned_s=back_s,
        gone_s=gone_s,
        recovered=recovered,
    )


async def _absence(scene: Scene, plan: Plan) -> dict[str, list[int]]:
    """Let the hours of the absence pass, with some events in each. Return what is pending."""
    places = {name: scene.places[name] for name in (AWAY, DOWN, GONE)}
    endpoints = [id for place in places.values() for id in place.ids.values()]
    pending: dict[str, list[int]] = {name: [] for name in places}
    for _ in range(0, plan.hours, plan.every_h):
        for name in (AWAY, DOWN):
            await scene.fill(name, plan.events)
        await Hours(scene.clock, endpoints, plan.step_s).run(plan.every_h * HOUR_S)
        counts: dict[int, int] = dict(await scene.hub.rows(PENDING, endpoints))  # type: ignore[arg-type]
        for name, place in places.items():
            pending[name].append(sum(counts[id] for id in place.ids.values()))
        scene.raise_broken()
    return pending


async def _return(scene: Scene) -> tuple[dict[str, float], list[float]]:
    """Let the receivers answer 200 again. Return the seconds until everything had arrived, by
    endpoint, and how many deliveries were accepted in each ten seconds.
    """
    places = [scene.places[name] for name in (AWAY, DOWN)]
    hours = Hours(scene.clock, [id for place in places for id in place.ids.values()])
    already = len(scene.arrivals.taken)
    names = {name for place in places for name in place.ids}
    await scene.set_mood(DOWN, WELL)
    await scene.sink.switch(places[0].http, away=False)
    back_s = scene.clock.seconds_at(time.monotonic())
    while await scene.missing(AWAY, DOWN):
        if scene.clock.seconds_at(time.monotonic()) - back_s > RETURN_S_MAX:
            break  # the judge says what is missing
        found = await hours.settle()
        await hours.run(min(found.next_s or 1.0, RETURN_S_MAX) + 0.001)
    last_s = dict.fromkeys(sorted(names), 0.0)
    times = []
    for key, at in list(scene.arrivals.taken.items())[already:]:
        if key[0] in names:
            times.append(scene.clock.seconds_at(at))
            last_s[key[0]] = max(last_s[key[0]], times[-1] - back_s)
    rates = per_second(times, back_s, int(max(last_s.values())), BUCKET_S)
    return last_s, [BUCKET_S * rate for rate in rates]


async def _die(scene: Scene, hours: Hours, schedule: Sequence[int] | None) -> None:
    """Let time pass until every delivery to the receivers that are gone is a dead letter. While
    some only wait for the hub's search, which is by the machine's clock, the driven one stands.
    """
    total_s = sum(limits.CALLBACK_RETRY_SCHEDULE_S if schedule is None else schedule)
    total_s = max(total_s, int(limits.CALLBACK_CIRCUIT_S_MAX))
    left = 1
    for _ in range(DIE_HOURS_MAX):
        await hours.run(HOUR_S)
        until_at = time.monotonic() + EXHAUST_S
        while True:
            [(left, withheld)] = await scene.hub.rows(WITHHELD, total_s, list(hours.endpoints))
            if not left:
                return
            if not withheld or time.monotonic() > until_at:
                break
            await asyncio.sleep(0.5)
    raise NeverCame(f"{left} deliveries are not dead letters after {DIE_HOURS_MAX} hours")


async def judged(scene: Scene, found: Outage) -> list[str]:
    """Return what is wrong. The arrivals have judged ids, contents, signatures and order."""
    problems = await scene.missing(AWAY, DOWN, GONE) + scene.arrivals.taken_problems()
    problems += recovery_wrong(found.recovered, found.emitted[GONE], scene.places[GONE].ids)
    problems += await attempts_wrong(scene, AWAY)
    problems += await attempts_wrong(scene, DOWN)
    return problems + [
        f"the last one of {name} arrived {seconds / 60:.1f} minutes after the return"
        for name, seconds in found.returned_s.items()
        if seconds > RETURN_S_MAX
    ]


async def attempts_wrong(scene: Scene, stream: str) -> list[str]:
    """Return deliveries of which an attempt had another id than the one that arrived, by the
    attempts that the API shows.
    """
    problems: list[str] = []
    for name, id in scene.places[stream].ids.items():
        page = await scene.get(stream, f"/v1/deliveries?endpoint={id}&limit={SAMPLES}")
        for item in page["items"]:
            one = await scene.get(stream, f"/v1/deliveries/{item['id']}")
            arrived = scene.arrivals.firsts[name, stream, one["sequence"]].webhook_id
            problems += [
                f"{name} {one['sequence']}: attempt {attempt['number']} without {arrived}"
                for attempt in one["attempts"]
                if f"webhook-id: {arrived}\r\n" not in _headers(attempt["request"])
            ]
    return shorten(problems)


def _headers(request: Any) -> str:
    """Return the headers of a recorded request, each with its line's end."""
    return "\r\n".join([*str(request).splitlines(), ""]).lower()


def show(found: Outage, plan: Plan) -> None:
    """Print the figures."""
    print(f"{plan.hours} hours away, {found.emitted[AWAY]} events to each endpoint that returned")
    for name, count in sorted(found.requests.items()):
        print(f"{name}: {count} requests until the return")
    for name, seconds in found.returned_s.items():
        print(f"{name}: everything had arrived {seconds / 60:.1f} minutes after the return")
    print(f"{found.emitted[GONE]} events to each endpoint that did not return:")
    print(f"dead letters after {found.gone_s / HOUR_S:.0f} hours")
    recovered = found.recovered
    for name, counts in (
        ("listed", recovered.listed),
        ("announced", recovered.announced),
        ("previewed", recovered.previewed),
        ("sent again", {id: run["written"] for id, run in recovered.runs.items()}),
    ):
        print(f"{name}, by endpoint: {', '.join(map(str, counts.values()))}")
    print(f"recovered within {recovered.seconds:.0f} s")


def plot(path: Path, found: Outage) -> None:
    """Draw what was pending in each hour, and what arrived after the return."""
    hours = [float(hour) for hour in range(1, len(found.pending[AWAY]) + 1)]
    series = [
        PlotSeries(name, [float(count) for count in found.pending[name]])
        for name in (AWAY, DOWN, GONE)
    ]
    title = f"Pending deliveries while receivers are away for {len(hours)} hours"
    draw(path, hours, series, PlotLabels(title, "deliveries", "hours"))
    since = [bucket * BUCKET_S / 60 for bucket in range(len(found.accepted))]
    drain = path.with_name(f"{path.stem}-return{path.suffix}")
    accepted = PlotSeries("accepted in ten seconds", found.accepted)
    draw(drain, since, [accepted], PlotLabels("After the return", "deliveries", "minutes"))
