"""The command `python -m tests.benchmarks.load.sink`: cheap receivers of callbacks. Prints their
ports as JSON, and for every line on standard input how many requests the healthy one received and
when it received the first and the last.
"""

import asyncio
import json
import sys
import time
from typing import cast

import uvloop

from tests.benchmarks.load.receiver import Receiver

DRIP_S = 1.0


class Count:
    """The requests since the last report; times of the monotonic clock."""

    requests = 0
    first_s = 0.0
    last_s = 0.0

    def took(self, path: str, body: bytes) -> None:
        self.last_s = time.monotonic()
        if not self.requests:
            self.first_s = self.last_s
        self.requests += 1

    def report(self) -> str:
        text = json.dumps([self.requests, self.first_s, self.last_s])
        self.requests = 0
        return text


class Hanging(asyncio.Protocol):
    """A receiver that reads everything and never answers."""


class Dripping(asyncio.Protocol):
    """A receiver that answers a byte a second."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._drip(cast(asyncio.Transport, transport), b"HTTP/1.1 200 OK\r\nx-slow: " + b"x" * 600)

    def _drip(self, transport: asyncio.Transport, rest: bytes) -> None:
        if rest and not transport.is_closing():
            transport.write(rest[:1])
            loop = asyncio.get_running_loop()
            loop.call_later(DRIP_S, self._drip, transport, rest[1:])


async def main() -> None:
    loop = asyncio.get_running_loop()
    count = Count()
    kinds = {"healthy": lambda: Receiver(count.took), "hanging": Hanging, "dripping": Dripping}
    ports = {}
    for name, kind in kinds.items():
        server = await loop.create_server(kind, "127.0.0.1", 0)
        ports[name] = server.sockets[0].getsockname()[1]
    print(json.dumps(ports), flush=True)
    while await loop.run_in_executor(None, sys.stdin.readline):
        print(count.report(), flush=True)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
