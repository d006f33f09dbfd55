"""One request to the bulk route that stays open: lines are sent while the answer arrives. Plain."""

import asyncio

import orjson

from tests.benchmarks.load.http import HOST, RequestFailed, now_ns
from tests.benchmarks.load.jobs import Target

PATH = "/v1/registrations/bulk"


class Bulk:
    """The request. `sent` and `acknowledged`: (line, time) at which so many lines were sent, or
    stored.
    """

    def __init__(self, target: Target) -> None:
        self.sent: list[tuple[int, int]] = []
        self.acknowledged: list[tuple[int, int]] = []
        self.refused: list[str] = []
        self._target = target
        self._lines = 0

    async def open(self) -> None:
        self._reader, self._writer = await asyncio.open_connection(HOST, self._target.port)
        head = (
            f"POST {PATH} HTTP/1.1",
            f"host: {HOST}:{self._target.port}",
            f"authorization: {self._target.headers['authorization']}",
            "content-type: application/x-ndjson",
            "transfer-encoding: chunked",
        )
        self._writer.write(("\r\n".join(head) + "\r\n\r\n").encode())

    async def send(self, lines: list[bytes]) -> None:
        data = b"\n".join(lines) + b"\n"
        self._lines += len(lines)
        self.sent.append((self._lines, now_ns()))
        self._writer.write(b"%x\r\n%b\r\n" % (len(data), data))
        await self._writer.drain()

    async def end(self) -> None:
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    async def hear(self) -> None:
        """Read the answer up to its last line. Raise RequestFailed."""
        head = await self._reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise RequestFailed(head[:400].decode("latin-1"))
        rest = b""
        while size := int(await self._reader.readline(), 16):
            data = rest + await self._reader.readexactly(size)
            await self._reader.readline()
            *lines, rest = data.split(b"\n")
            for line in lines:
                self._take(orjson.loads(line))
        self._writer.close()
        if not self.acknowledged or self.acknowledged[-1][0] != self._lines:
            raise RequestFailed(f"bulk ended at {self.acknowledged[-1:]} of {self._lines} lines")

    def _take(self, acknowledged: dict[str, object]) -> None:
        if "line" in acknowledged or "error" in acknowledged:
            self.refused.append(str(acknowledged)[:300])
        elif "done" not in acknowledged:
            self.acknowledged.append((int(str(acknowledged["through"])), now_ns()))
