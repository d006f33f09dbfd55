"""The behaviours of failing receivers. Each answers one request at the sink in its own way, and
none of them ever accepts an event properly except `slow` and `huge`, whose 200 comes late, or with
a body that has no end.
"""

import asyncio
import random
import socket
import struct
from collections.abc import Awaitable, Callable

from aiohttp import web

SLOW_S = (3.0, 8.0)
HANG_S = 40.0  # longer than any attempt
RETRY_AFTER_S = 3
DRIP_S = 0.5
CHUNK = b"x" * 65_536
CHUNKS_MAX = 512  # 32 MiB
REDIRECTED = "/e/redirected"  # where nobody may call

Behaviour = Callable[[web.BaseRequest, random.Random], Awaitable[web.StreamResponse | None]]


async def slow(_request: web.BaseRequest, dice: random.Random) -> web.StreamResponse | None:
    await asyncio.sleep(dice.uniform(*SLOW_S))
    return web.Response(status=200)


async def hang(request: web.BaseRequest, _dice: random.Random) -> web.StreamResponse | None:
    """Send nothing until the caller leaves."""
    for _ in range(int(HANG_S / DRIP_S)):
        await asyncio.sleep(DRIP_S)
        if request.transport is None or request.transport.is_closing():
            break
    return None


async def reset(request: web.BaseRequest, _dice: random.Random) -> web.StreamResponse | None:
    """Close the connection with RST."""
    if request.transport is not None:
        connection: socket.socket = request.transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return None


async def fail(_request: web.BaseRequest, _dice: random.Random) -> web.StreamResponse | None:
    return web.Response(status=500)


async def throttle(_request: web.BaseRequest, _dice: random.Random) -> web.StreamResponse | None:
    return web.Response(status=429, headers={"Retry-After": str(RETRY_AFTER_S)})


async def redirect(_request: web.BaseRequest, _dice: random.Random) -> web.StreamResponse | None:
    return web.Response(status=301, headers={"Location": REDIRECTED})


async def stream_huge(request: web.BaseRequest, _dice: random.Random) -> web.StreamResponse | None:
    """Answer 200 with a body that the hub must not read to its end."""
    response = web.StreamResponse()
    await response.prepare(request)
    for _ in range(CHUNKS_MAX):
        await response.write(CHUNK)
    return response


async def drip(request: web.BaseRequest, _dice: random.Random) -> web.StreamResponse | None:
    """Send the status line and one byte of a header every half second, without end."""
    if request.transport is not None:
        request.transport.write(b"HTTP/1.1 200 OK\r\nx-slow: ")
        for _ in range(int(HANG_S / DRIP_S)):
            await asyncio.sleep(DRIP_S)
            if request.transport is None or request.transport.is_closing():
                break
            request.transport.write(b"x")
    return None


BEHAVIOURS: dict[str, Behaviour] = {
    "slow": slow,
    "hangs": hang,
    "resets": reset,
    "fails": fail,
    "throttles": throttle,
    "redirects": redirect,
    "huge": stream_huge,
    "drips": drip,
}
STATUSES = {"slow": 200, "huge": 200, "fails": 500, "throttles": 429, "redirects": 301}


async def behave(
    name: str, request: web.BaseRequest, dice: random.Random
) -> tuple[int, web.StreamResponse]:
    """Answer a request as a receiver of this behaviour does; return the status that it amounts to,
    0 for no answer, and the response.
    """
    try:
        response = await BEHAVIOURS[name](request, dice)
    except (ConnectionError, asyncio.CancelledError):
        return STATUSES.get(name, 0), web.Response(status=500)
    if response is None:
        if request.transport is not None:
            request.transport.abort()
        return 0, web.Response(status=500)
    return STATUSES[name], response
