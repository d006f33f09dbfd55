"""Frames built by hand equal those of the library."""

import pytest
from websockets.frames import Frame, Opcode

from eventhub.web import websocket
from eventhub.web.websocket import uncompressed


@pytest.mark.parametrize("is_compiled", [True, False])
@pytest.mark.parametrize("size", [0, 125, 126, 0xFFFF, 0x10000])
def test_a_frame_equals_the_librarys(
    size: int, is_compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_compiled:
        monkeypatch.setattr(websocket, "transcoder", None)
    text, data = "é" * (size // 2) + "x" * (size % 2), bytes(size)
    known = [Frame(Opcode.TEXT, text.encode()), Frame(Opcode.BINARY, data)]
    assert uncompressed([text, data]) == b"".join(f.serialize(mask=False) for f in known)
