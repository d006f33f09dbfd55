"""The command `python -m tests.chaos starts`: one data folder, a busy machine, and a hub that is
started again and again after every kind of end, with kills in between. Every start has to become
ready.
"""

import argparse
import asyncio
import random
import socket
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import aiohttp

from tests.chaos import report
from tests.chaos.emitters import Clock, Emitter, Habit, Target
from tests.chaos.hub import READY, Crew, HubUnderTest, send_signal
from tests.chaos.journal import Journal
from tests.chaos.judge import Judge, last_judgement
from tests.chaos.readers import close_quietly
from tests.chaos.starts.endings import ENDINGS, load_average
from tests.chaos.starts.ids import busy, occupied
from tests.chaos.until import NeverCame, until
from tests.chaos.world import SEGMENT_EVENTS_MAX, STREAMS

CREW = Crew(web=2, forwarders=1, workers=1)
PARTS = ("postgres", "redis", "web-1", "web-2", "forward-1", "worker-1", "beat")
PERSISTENCE_S = 900.0  # an emitter outlives several starts on a busy machine
HABITS = {
    "batches": Habit("alpha", 0.5, batch_max=40, in_flight=4, persistence_s=PERSISTENCE_S),
    "singles": Habit("beta", 0.2, batch_max=1, in_flight=8, persistence_s=PERSISTENCE_S),
    "mixed": Habit("gamma", 0.3, batch_max=20, in_flight=4, persistence_s=PERSISTENCE_S),
}
SHOWN_LINES = 30
ENDED_S_MAX = 120.0  # for guardians to stop all parts of a hub that was killed


class Start(NamedTuple):
    """A start, and the end before it. Times in seconds."""

    number: int
    ending: str
    end_s: float
    cut_short: int  # starts before it that were killed before they were ready
    occupied: list[str]
    harmed: str  # what was killed while it ran before the end
    ready_s: float
    load: float
    acknowledged: int
    problems: list[str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--times", type=int, default=100, help="starts")
    parser.add_argument("--load", type=int, default=20, help="processes that compute beside it")
    parser.add_argument("--rate", type=float, default=200.0, help="events offered per second")
    parser.add_argument("--seconds", type=float, default=4.0, help="of load in a start, at most")
    parser.add_argument("--patience", type=float, default=300.0, help="until a start is ready")
    parser.add_argument("--only", action="append", default=[], choices=sorted(ENDINGS))


async def run(options: argparse.Namespace, data: Path) -> int:
    """Run all starts, or until one fails. Return the exit status."""
    print(f"seed {options.seed}, data {data}", flush=True)
    starts, problems, acknowledged = await scenario(options, data)
    print(table(starts))
    ready = sum(not start.problems for start in starts)
    print(f"starts {len(starts)}, ready {ready}, acknowledged {acknowledged}")
    summary = {"seed": options.seed, "starts": [start._asdict() for start in starts]}
    return report.end(options.json, summary, problems)


async def scenario(
    options: argparse.Namespace, data: Path, crew: Crew = CREW
) -> tuple[list[Start], list[str], int]:
    """Return every start, the problems, and the number of acknowledged events."""
    starts: list[Start] = []
    with busy(options.load):
        async with Scene.open(options, data, crew) as scene:
            names = Deck(sorted(options.only or ENDINGS), scene.dice)
            for number in range(1, options.times + 1):
                starts.append(await scene.start_again(number, names.draw()))
                print(line(starts[-1]), flush=True)
                if starts[-1].problems:
                    break
            problems = [problem for start in starts for problem in start.problems]
            if scene.hub.running:
                problems += await scene.judge()
            return starts, problems, len(scene.journal.promised)


class Deck:
    """A shuffled sequence: each name once, in any order, before one is repeated."""

    def __init__(self, names: list[str], dice: random.Random) -> None:
        self._names, self._dice = names, dice
        self._left: list[str] = []

    def draw(self) -> str:
        if not self._left:
            self._left = self._dice.sample(self._names, len(self._names))
        return self._left.pop()


class Scene:
    """The present hub, and the emitters, which outlive it. Open it with `Scene.open`."""

    def __init__(
        self, options: argparse.Namespace, data: Path, crew: Crew, journal: Journal
    ) -> None:
        self.options = options
        self._crew = crew
        self.dice = random.Random(options.seed)
        self.journal = journal
        self.clock = Clock()
        self._data = data / "hub"
        self._port = _free_port()
        self._key = ""
        self._emitters: list[Emitter] = []
        self._tasks: list[asyncio.Task[None]] = []
        self.hub = self._hub()

    @classmethod
    @asynccontextmanager
    async def open(
        cls, options: argparse.Namespace, data: Path, crew: Crew
    ) -> AsyncIterator["Scene"]:
        """Start a hub on an empty folder."""
        async with AsyncExitStack() as stack:
            journal = stack.enter_context(Journal(data / "journal.ndjson"))
            scene = cls(options, data, crew, journal)
            stack.callback(lambda: scene.hub.kill_leftovers())
            stack.callback(lambda: scene.hub.stop())
            await scene._ready()
            scene._key = await asyncio.to_thread(scene.hub.create_key, "chaos")
            await scene._create_streams()
            stack.push_async_callback(scene._end)
            scene._emit()
            yield scene

    async def start_again(self, number: int, ending: str) -> Start:
        """Offer load, perhaps kill, end the hub, and start it again."""
        before = len(self.journal.promised)
        self.clock.start()
        await asyncio.sleep(self.dice.uniform(0.3, 1.0) * self.options.seconds)
        harmed = self._harm()
        if harmed:
            await asyncio.sleep(self.dice.uniform(0.0, 1.0))
        self.clock.pause()
        problems: list[str] = []
        cut, taken, ready_s, end_s = 0, [], 0.0, 0.0
        try:
            ended = await ENDINGS[ending](self.hub, self.dice)
            problems, end_s = ended.problems, ended.seconds
            cut = await self._cut_short()
            if self.dice.random() < 0.5 and not ended.stays:  # else the next start meets the rest
                await until(lambda: not self.hub.leftovers(), "the parts to end", ENDED_S_MAX)
            with occupied(self._data) as taken:
                self.hub = self._hub()
                ready_s = await self._ready()
        except NeverCame as error:
            problems += [str(error), *self.hub.lines()[-SHOWN_LINES:]]
        acknowledged = len(self.journal.promised) - before
        return Start(
            number,
            ending,
            end_s,
            cut,
            taken,
            harmed,
            ready_s,
            load_average(),
            acknowledged,
            problems,
        )

    async def judge(self) -> list[str]:
        """Compare the tables with the promises when all emitters have their answers."""
        await until(
            lambda: all(one.idle for one in self._emitters) or any(t.done() for t in self._tasks),
            "the emitters' answers",
            self.options.patience,
        )
        judge = Judge(self.hub, self._key, STREAMS)
        problems = [*self.journal.problems, *await judge.judge(self.journal, [])]
        return problems + await last_judgement(self.hub, self._key, self.journal)

    def _harm(self) -> str:
        """Kill one part with SIGKILL, in half of the starts."""
        if self.dice.random() < 0.5:
            return ""
        part = self.dice.choice(PARTS)
        send_signal(self.hub.pids([part]), 9)
        return part

    async def _cut_short(self) -> int:
        """Kill, in a third of the cases, one start shortly after its beginning."""
        if self.dice.random() > 1 / 3:
            return 0
        self.hub = self._hub()
        began, lasts_s = time.monotonic(), self.dice.uniform(0.1, 5.0)
        await until(
            lambda: time.monotonic() - began > lasts_s or not self.hub.running,
            "a while",
            2 * lasts_s + 1,
        )
        if not self.hub.running:
            raise NeverCame("a start that was to be cut short had ended by itself")
        await ENDINGS[self.dice.choice(("kill-supervisor", "kill-guardians", "kill-all"))](
            self.hub, self.dice
        )
        return 1

    def _hub(self) -> HubUnderTest:
        return HubUnderTest(self._data, self._crew, port=self._port)

    async def _ready(self) -> float:
        """Return the seconds until the banner. Raise NeverCame, also if the hub ended."""
        hub = self.hub
        took_s = await until(
            lambda: READY in hub.output() or not hub.running, READY, self.options.patience
        )
        if READY not in hub.output():
            raise NeverCame(f"the hub ended before it was ready, after {took_s:.0f} s")
        return took_s

    async def _create_streams(self) -> None:
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {self._key}"}) as http:
            for name in STREAMS:
                policy = {"segment_events_max": SEGMENT_EVENTS_MAX}
                async with http.put(f"{self.hub.url}/v1/streams/{name}", json=policy) as response:
                    response.raise_for_status()

    def _emit(self) -> None:
        url = f"http://127.0.0.1:{self._port}"
        target = Target(url, self._key, self.journal, self.clock, self.options.rate)
        for name, habit in HABITS.items():
            emitter = Emitter(name, habit, target, random.Random(self.dice.random()))
            self._emitters.append(emitter)
            self._tasks.append(asyncio.create_task(emitter.run(), name=name))

    async def _end(self) -> None:
        await close_quietly(self._tasks)


def line(start: Start) -> str:
    return (
        f"{start.number:>3}  {start.ending:<22} ended {start.end_s:>5.1f} s  "
        f"ready {start.ready_s:>6.1f} s  load {start.load:>5.1f}  "
        f"acknowledged {start.acknowledged:>5}  cut short {start.cut_short}  "
        f"killed {start.harmed or '-':<9} {report.verdict(start.problems)}  "
        f"({', '.join(start.occupied)})"
    )


def table(starts: list[Start]) -> str:
    """Return, by kind of end, how often it occurred and how long the next start took."""
    endings = sorted({start.ending for start in starts})
    those = {ending: [start for start in starts if start.ending == ending] for ending in endings}
    columns = [
        *report.seconds("ready", lambda start: start.ready_s),
        report.total("ids taken", lambda start: len(start.occupied)),
    ]
    return report.table("ending", those, columns)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])
