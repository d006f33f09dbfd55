"""Writes to a peer are sent at once, or together while it is held."""

import asyncio

import pytest

from eventhub.http.messages import Incoming, Message, Peer, Response, send_response


class Recorded(asyncio.Transport):
    """A transport that keeps what each write was given."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.closed
        self.writes.append(bytes(data))

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


async def _nothing_more() -> Message:
    return {"type": "http.disconnect"}


@pytest.mark.parametrize("ends", [False, True])
async def test_head_and_body_of_an_answer_are_one_write(*, ends: bool) -> None:
    transport = Recorded()
    peer = Peer(transport)

    async def send(message: Message) -> None:  # as the server does
        peer.write(b"head" if message["type"] == "http.response.start" else message["body"])
        if ends and message["type"] == "http.response.body":
            peer.close()

    await send_response(send, Response(200, b" body", []), Incoming(_nothing_more, peer))
    assert transport.writes == [b"head body"]
    assert transport.closed is ends


async def test_a_stream_is_written_in_chunks() -> None:
    transport = Recorded()
    peer = Peer(transport)
    for piece in (b"head", b"one", b"two"):
        peer.write(piece)
    assert transport.writes == [b"head", b"one", b"two"]


async def test_nothing_is_written_to_a_connection_that_closes() -> None:
    transport = Recorded()
    peer = Peer(transport)
    peer.hold()
    peer.write(b"head")
    transport.close()
    peer.release()
    assert transport.writes == []
