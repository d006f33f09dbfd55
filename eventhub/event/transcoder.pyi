from typing import Any

def shared_json(
    segment: str, sequence: int, appended_at_us: int, payload: bytes, /
) -> str | None: ...
def event_frame(
    before: bytes,
    sequence: int,
    prev: int,
    liveness: int,
    appended_at_us: int,
    payload: bytes,
    /,
) -> bytes: ...
def may_be_restricted(payload: bytes, /) -> bool: ...
def websocket_messages(messages: list[str | bytes], /) -> bytes: ...

_Options = tuple[int, tuple[str, bytes, bytes], tuple[int, int, int, int], tuple[int, int]]

def plain_frames(
    frames: list[Any], events: list[Any], at: int, options: _Options, /
) -> tuple[int, int, int]: ...
def packed_run(packed: bytes, after: int, /) -> tuple[int, int, int]: ...
def packed_frames(
    frames: list[Any], packed: bytes, segment: str, at: tuple[int, int], options: _Options, /
) -> tuple[int, int, int, int]: ...
