"""Frames built by hand equal those of the library."""

import pytest
from websockets.frames import Frame, Opcode

from eventhub.web.websocket import uncompressed


@pytest.mark.parametrize("size", [0, 125, 126, 0xFFFF, 0x10000])
def test_a_frame_equals_the_librarys(size: int) -> None:
    text, data = "é" * (size // 2) + "x" * (size % 2), bytes(size)
    known = [Frame(Opcode.TEXT, text.encode()), Frame(Opcode.BINARY, data)]
    assert b"".join(uncompressed([text, data])) == b"".join(f.serialize(mask=False) for f in known)
