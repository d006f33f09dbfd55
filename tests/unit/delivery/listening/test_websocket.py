"""Frames written by hand are those of the library."""

import pytest
from websockets.frames import Frame, Opcode

from eventhub.websocket import uncompressed


@pytest.mark.parametrize("size", [0, 125, 126, 0xFFFF, 0x10000])
def test_a_frame_is_written_as_the_library_writes_it(size: int) -> None:
    text, data = "é" * (size // 2) + "x" * (size % 2), bytes(size)
    known = [Frame(Opcode.TEXT, text.encode()), Frame(Opcode.BINARY, data)]
    assert b"".join(uncompressed([text, data])) == b"".join(f.serialize(mask=False) for f in known)
