"""Waiting long polls, and their memory in the server. Plain."""

import asyncio

import psutil

from tests.benchmarks.load.http import HOST, Connection, RequestFailed, get_head, request_head
from tests.benchmarks.load.jobs import IdleJob
from tests.benchmarks.load.transports import POLL_S, Receipt, first_of

QUIET_S = 0.5
QUIET_SHARE = 0.1  # of a core: below it the server has settled
QUIET_TRIES = 40
WARMUP = 20


class Polls:
    """Open connections with a poll each."""

    def __init__(self, job: IdleJob) -> None:
        self._job = job
        self._receipt = Receipt()
        self._open: list[Connection] = []
        self._answered = 0
        self._all: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def open(self, count: int) -> None:
        """Open so many polls that wait for an event."""
        loop, port = asyncio.get_running_loop(), self._job.target.port
        request = get_head(self._job.target, f"?from=now&timeout={POLL_S}", "application/json")
        self._answered, self._all, self._open = 0, loop.create_future(), []
        for _ in range(count):
            _, poll = await loop.create_connection(
                lambda: Connection(self._took, self._receipt.fail), HOST, port
            )
            poll.send(request)
            self._open.append(poll)

    async def end(self) -> None:
        """End all polls by one event; check that each waited for it."""
        body = self._job.body.encode()
        _, producer = await asyncio.get_running_loop().create_connection(
            lambda: Connection(lambda _: None, self._receipt.fail), HOST, self._job.target.port
        )
        producer.send(request_head(self._job.target, len(body)) + body)
        await first_of(self._all, self._receipt.failed)
        for poll in self._open:
            poll.transport.close()

    def _took(self, poll: Connection) -> None:
        if poll.answer.count(b'"liveness":"live"') != 1:
            self._receipt.fail(RequestFailed(f"not one live event: {poll.answer[:400]!r}"))
        self._answered += 1
        if self._answered == len(self._open):
            self._all.set_result(None)


async def run(job: IdleJob) -> dict[str, float]:
    """Return KB of the server's private memory per poll, above its memory before the first one."""
    server, polls = psutil.Process(job.pid), Polls(job)
    await polls.open(WARMUP)
    await settled(server)
    await polls.end()
    before = server.memory_full_info().uss
    await polls.open(job.polls)
    await settled(server)
    after = server.memory_full_info().uss
    await polls.end()
    return {
        "kb_each": (after - before) / 1_000 / job.polls,
        "all": job.polls,
        "uss_mb": after / 1e6,
    }


async def settled(server: psutil.Process) -> None:
    """Wait until the server is idle."""
    for _ in range(QUIET_TRIES):
        before = server.cpu_times()
        await asyncio.sleep(QUIET_S)
        after = server.cpu_times()
        if after.user + after.system - before.user - before.system < QUIET_SHARE * QUIET_S:
            return
    raise RequestFailed("the server does not settle")
