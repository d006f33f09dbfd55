"""A loop in a thread of its own, and Ctrl-C at every line that its caller runs."""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from types import FrameType
from typing import Any

import pytest
from eventhub_client import background
from eventhub_client.background import Background

LINES_OF_ONE = 250
"""More than `iterate` runs for three items."""


@pytest.fixture
def loop() -> Iterator[Background]:
    made = Background()
    yield made
    made.close()


async def three(begun: list[int], ended: list[int]) -> AsyncIterator[int]:
    begun.append(1)
    try:
        for item in range(3):
            await asyncio.sleep(0)
            yield item
    finally:
        await asyncio.sleep(0)
        ended.append(1)


class Interrupting:
    """Raises KeyboardInterrupt at the line numbered `after` of what `iterate` and `run` execute."""

    def __init__(self, after: int) -> None:
        self.left = after

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        if "asyncio" not in frame.f_code.co_filename and background.__file__ != (
            frame.f_code.co_filename
        ):
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self


def consumed(loop: Background, begun: list[int], ended: list[int], after: int) -> bool:
    """Return whether all three items arrived."""
    items = loop.iterate(three(begun, ended))
    sys.settrace(Interrupting(after))
    try:
        return list(items) == [0, 1, 2]
    except KeyboardInterrupt:
        return False
    finally:
        sys.settrace(None)
        items.close()  # type: ignore[attr-defined]


def test_ctrl_c_at_any_line_leaves_nothing_running_and_a_loop_that_works(loop: Background) -> None:
    whole = 0
    for after in range(1, LINES_OF_ONE):
        begun: list[int] = []
        ended: list[int] = []
        whole += consumed(loop, begun, ended, after)
        assert loop.run(asyncio.sleep(0, "works")) == "works"
        loop.run(others_ended())
        assert begun == ended
    assert 0 < whole < LINES_OF_ONE - 100


async def others_ended() -> None:
    while others := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait(others)
