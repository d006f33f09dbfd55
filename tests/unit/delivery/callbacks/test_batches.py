"""Batches: their size, their id, and the results of single events in an answer."""

from typing import NamedTuple

import pytest

from delivery.callbacks.batches import (
    BatchSize,
    batch_content,
    batch_id,
    count_for_batch,
    event_results,
)
from delivery.callbacks.retry import AttemptOutcome


class Element(NamedTuple):
    element: bytes
    attempts: int = 0


def failed(status: int, retry_after_s: float | None = None) -> AttemptOutcome:
    return AttemptOutcome("status", status, retry_after_s, of_event=True)


SIZE = BatchSize(8, 1_000, cloudevents=False)
SMALL = Element(b"{}")


@pytest.mark.parametrize(
    ("elements", "count"),
    [
        ([SMALL] * 3, 3),
        ([SMALL] * 9, 8),
        ([Element(b"x" * 400)] * 5, 2),
        ([Element(b"x" * 4_000), SMALL], 1),  # one event is always sent
        ([Element(b"{}", 1)] + [SMALL] * 8, 4),  # half as many after a failure
        ([SMALL, SMALL, Element(b"{}", 2), SMALL], 2),  # it would make the batch too large
        ([Element(b"{}", 15), SMALL], 1),
    ],
)
def test_a_batch_is_bounded_by_count_and_bytes_and_halves_after_failures(
    elements: list[Element], count: int
) -> None:
    assert count_for_batch(elements, SIZE) == count


def test_the_id_depends_on_the_deliveries_and_their_order() -> None:
    assert batch_id(["msg_a", "msg_b"]) == batch_id(["msg_a", "msg_b"])
    assert batch_id(["msg_a", "msg_b"]) != batch_id(["msg_b", "msg_a"])
    assert batch_id(["msg_a", "msg_b"]) != batch_id(["msg_a"])
    assert batch_id(["msg_a"]).startswith("batch_")


def test_a_batch_is_an_object_or_an_array_of_cloudevents() -> None:
    elements = [Element(b'{"a":1}'), Element(b'{"b":2}')]
    assert batch_content(elements, SIZE).body == b'{"batch":[{"a":1},{"b":2}]}'
    content = batch_content(elements, SIZE._replace(cloudevents=True))
    assert content.body == b'[{"a":1},{"b":2}]'
    assert "application/cloudevents-batch+json" in content.headers


@pytest.mark.parametrize(
    ("answer", "failures"),
    [
        (b"", {}),
        (b"thanks", {}),
        (b'{"results":[]}', {}),
        (b'{"results":[{"id":"a","status":204},{"id":"b"}]}', {}),
        (b'{"results":[{"id":"a","status":500}]}', {"a": failed(500)}),
        (b'{"results":[{"id":"a","status":500},{"id":"a","status":200}]}', {"a": failed(500)}),
        (b'{"results":[{"id":"other","status":200}]}', {}),
        (
            b'{"results":[{"id":"a","retry_after":30}]}',
            {"a": failed(503, 30)},
        ),
        (
            b'{"results":[{"id":"a","status":429,"retry_after":2.5}]}',
            {"a": failed(429, 2.5)},
        ),
        (
            b'{"results":[{"id":"a","status":429,"retry_after":-1}]}',
            {"a": failed(429, 0)},
        ),
    ],
)
def test_an_answer_names_the_events_that_failed(
    answer: bytes, failures: dict[str, AttemptOutcome]
) -> None:
    assert event_results(answer, {"a", "b"}) == failures


@pytest.mark.parametrize(
    "answer",
    [
        None,
        b'{"results":[{"id":"a"',
        b'{"results":7}',
        b'["results"]',
        b'{"results":[7]}',
        b'{"results":[{"status":500}]}',
        b'{"results":[{"id":8,"status":500}]}',
        b'{"results":[{"id":"other","status":500}]}',
        b'{"results":[{"id":"a","status":"500"}]}',
        b'{"results":[{"id":"a","status":true}]}',
        b'{"results":[{"id":"a","status":5}]}',
        b'{"results":[{"id":"a","retry_after":"30"}]}',
    ],
)
def test_results_that_cannot_be_read_are_refused(answer: bytes | None) -> None:
    """Otherwise events that the receiver refused would count as delivered."""
    with pytest.raises(ValueError):
        event_results(answer, {"a", "b"})
