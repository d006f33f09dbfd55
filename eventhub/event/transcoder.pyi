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
def plain_frames(
    frames: list[Any],
    events: list[Any],
    at: int,
    form: int,
    parts: tuple[str, bytes, bytes],
    numbers: tuple[int, int, int, int],
    sizes: tuple[int, int],
    /,
) -> tuple[int, int, int]: ...
