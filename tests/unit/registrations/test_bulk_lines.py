"""Bulk lines: split wherever the parts of a body end, and collected into bounded batches."""

import asyncio
from collections.abc import Iterable
from itertools import pairwise

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventhub.base import limits
from eventhub.base.errors import EventHubError, RequestTimeout
from eventhub.http.messages import Disconnected, Message
from registrations.bulk.batches import BatchReader
from registrations.bulk.lines import ChangeLine, CreateLine, EndLine, LineSplitter, read_line
from registrations.endpoints.addresses import CallbackAddresses

ANY = CallbackAddresses()


def parts_of(body: bytes, cuts: Iterable[int]) -> list[bytes]:
    offsets = sorted({cut % (len(body) + 1) for cut in cuts} | {0, len(body)})
    return [body[one:other] for one, other in pairwise(offsets)]


@given(st.lists(st.binary(max_size=8).map(lambda line: line.replace(b"\n", b""))),
       st.lists(st.integers(0, 1_000)), st.booleans())  # fmt: skip
def test_lines_do_not_depend_on_the_parts_of_the_body(
    lines: list[bytes], cuts: list[int], ended: bool
) -> None:
    body = b"\n".join(lines) + (b"\n" if ended and lines else b"")
    splitter = LineSplitter()
    found = [line for part in parts_of(body, cuts) for line in splitter.feed(part)]
    found += splitter.rest()
    expected = body.split(b"\n")
    if not expected[-1]:
        expected.pop()
    assert found == list(enumerate(expected, 1))


def test_a_line_that_is_too_long_is_skipped_and_not_buffered() -> None:
    splitter = LineSplitter()
    found = list(splitter.feed(b"a\n"))
    for _ in range(3 * limits.BULK_LINE_BYTES_MAX // 1_000):
        found += splitter.feed(b"x" * 1_000)
        assert len(splitter._partial) <= limits.BULK_LINE_BYTES_MAX
    found += splitter.feed(b"\nb\n")
    assert found == [(1, b"a"), (2, None), (3, b"b")]
    assert isinstance(read_line(2, None, ANY).operation, EventHubError)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ({"op": "create", "key": "k", "streams": ["a"]}, CreateLine),
        ({"op": "change", "id": 7, "type": None}, ChangeLine),
        ({"op": "change", "key": "k", "suspended": True}, ChangeLine),
        ({"op": "end", "id": 7}, EndLine),
        ({"op": "end", "key": "k"}, EndLine),
        ({"op": "end"}, "missing_field"),
        ({"op": "end", "id": 7, "key": "k"}, "missing_field"),
        ({"op": "end", "id": "7"}, "invalid_field"),
        ({"op": "end", "key": "k", "type": "x"}, "unknown_field"),
        ({"op": "change", "id": 7, "key": "k", "type": "x"}, "missing_field"),
        ({"op": ["end"], "id": 7}, "invalid_field"),
        ({"op": "create", "id": 7, "streams": ["a"]}, "unknown_field"),
        ({"op": "create"}, "missing_field"),
        ([], "invalid_field"),
    ],
)
def test_a_line_is_parsed_to_its_operation_or_error(line: object, expected: type | str) -> None:
    operation = read_line(3, orjson.dumps(line), ANY).operation
    if isinstance(expected, str):
        assert isinstance(operation, EventHubError)
        assert operation.code == expected
    else:
        assert isinstance(operation, expected)


class Body:
    """A body that arrives in the given messages; then it waits forever."""

    def __init__(self, *messages: Message) -> None:
        self.messages = [*messages]
        self.received = 0

    async def __call__(self) -> Message:
        self.received += 1
        if not self.messages:
            await asyncio.Event().wait()
        return self.messages.pop(0)


def part(lines: bytes, *, more: bool = True) -> Message:
    return {"type": "http.request", "body": lines, "more_body": more}


async def test_batches_are_bounded_and_the_body_is_read_on_demand() -> None:
    most = limits.REGISTRATIONS_PER_REQUEST_MAX
    body = Body(*(part(b"x\n" * 700) for _ in range(3)), part(b"\n\nlast", more=False))
    batches = BatchReader(body)
    await batches.start()
    assert body.received == 1
    first = await batches.next()
    assert ([number for number, _ in first], body.received) == ([*range(1, most + 1)], 2)
    second = await batches.next()
    assert (len(second), second[0][0], body.received) == (most, most + 1, 3)
    third = await batches.next()
    assert third == [*((number, b"x") for number in range(2_001, 2_101)), (2_103, b"last")]
    assert await batches.next() == []


async def test_large_lines_make_small_batches() -> None:
    line = b"y" * (limits.BULK_LINE_BYTES_MAX - 1) + b"\n"
    count = limits.BULK_BATCH_BYTES_MAX // limits.BULK_LINE_BYTES_MAX + 5
    batches = BatchReader(Body(*(part(line) for _ in range(count)), part(b"", more=False)))
    found = [await batches.next()]
    while found[-1]:
        found.append(await batches.next())
    sizes = [sum(len(text or b"") for _, text in batch) for batch in found]
    assert max(sizes) <= limits.BULK_BATCH_BYTES_MAX
    assert sum(map(len, found)) == count


async def test_a_few_lines_do_not_wait_for_more_and_an_idle_body_times_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "BULK_IDLE_S_MAX", 0.01)
    batches = BatchReader(Body(part(b"a\nb\nhal")))
    assert await batches.next() == [(1, b"a"), (2, b"b")]
    with pytest.raises(RequestTimeout):
        await batches.next()
    await batches.close()


async def test_a_disconnect_is_raised() -> None:
    batches = BatchReader(Body(part(b"a\n"), {"type": "http.disconnect"}))
    await batches.start()
    with pytest.raises(Disconnected):
        await batches.next()
