"""Plain ASGI that stores nothing: `noop` answers a POST, `broadcast` also sends it to every socket.
Plain.
"""

from tests.benchmarks.baselines.asgi import Receive, Scope, Send, answer, lifespan, read_body

_listeners: set[Send] = set()


async def noop(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        await lifespan(receive, send)
        return
    await read_body(receive)
    await answer(send)


async def broadcast(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        await lifespan(receive, send)
    elif scope["type"] == "websocket":
        await _listen(receive, send)
    else:
        text = (await read_body(receive)).decode()
        for listener in list(_listeners):
            await listener({"type": "websocket.send", "text": text})
        await answer(send)


async def _listen(receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "websocket.accept"})
    _listeners.add(send)
    try:
        while (await receive())["type"] != "websocket.disconnect":
            pass
    finally:
        _listeners.discard(send)
