"""Batches: several events of an endpoint in one request, and the results of single events in its
answer. Plain module.

After a failed request, half as many events are sent together, and so on: the one that the receiver
cannot take is alone in the end, and the others are delivered.
"""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple, Protocol

import orjson

from delivery.callbacks.body import RequestContent
from delivery.callbacks.retry import AttemptOutcome, outcome_of_status
from eventhub.base import limits

# the hub reads the answer, and decompresses nothing
NATIVE = "content-type: application/json\r\naccept-encoding: identity\r\n"
CLOUDEVENTS = (
    "content-type: application/cloudevents-batch+json; charset=utf-8\r\n"
    "accept-encoding: identity\r\n"
)


class BatchSize(NamedTuple):
    """The bounds of a batch, and whether it is of CloudEvents."""

    events_max: int
    bytes_max: int
    cloudevents: bool


class BatchElement(Protocol):
    """An event for a batch: its JSON, and its failed attempts."""

    @property
    def element(self) -> bytes: ...
    @property
    def attempts(self) -> int: ...


def count_for_batch(events: Iterable[BatchElement], size: BatchSize) -> int:
    """Return how many of the first events are sent together: at least one."""
    count, bytes_left, most = 0, size.bytes_max, size.events_max
    for event in events:
        if attempts := event.attempts:
            most = min(most, max(1, size.events_max >> min(attempts, 10)))
        bytes_left -= len(event.element) + 1
        if count and (count >= most or bytes_left < 0):
            break
        count += 1
    return count


def batch_id(messages: Sequence[str]) -> str:
    """Return the id of a batch: the same for the same deliveries in the same order."""
    return f"batch_{sha256(' '.join(messages).encode()).hexdigest()[:32]}"


def batch_content(events: Sequence[BatchElement], size: BatchSize) -> RequestContent:
    """Return the headers and the body of a batch."""
    joined = b",".join([event.element for event in events])
    if size.cloudevents:
        return RequestContent(CLOUDEVENTS, b"[%b]" % joined, limits.BATCH_ANSWER_BYTES_MAX)
    return RequestContent(NATIVE, b'{"batch":[%b]}' % joined, limits.BATCH_ANSWER_BYTES_MAX)


def event_results(answer: bytes | None, ids: Iterable[str]) -> Mapping[str, AttemptOutcome]:
    """Return the failures that the answer to a batch names, by the ids of their deliveries. An
    event that the answer does not name is delivered, and so is one whose `status` is 2xx.

    An answer without results names none. Raises ValueError for results that cannot be read, and for
    failures of other deliveries than those of the batch (`ids`): they may be of events that would
    be taken for delivered.
    """
    if answer is None:
        raise ValueError("the answer is incomplete or compressed")
    if b'"results"' not in answer:
        return {}
    found = orjson.loads(answer)
    results = found.get("results") if isinstance(found, dict) else None
    if not isinstance(results, list):
        raise ValueError("the results are no list")  # noqa: TRY004 - the receiver's mistake
    outcomes = [_result(each) for each in results]
    failures = {id: outcome for id, outcome in outcomes if outcome.code != "delivered"}
    if not failures.keys() <= set(ids):
        raise ValueError("a failure is of no delivery of the batch")
    return failures


def _result(result: Any) -> tuple[str, AttemptOutcome]:
    """Return the id of an event and its outcome: a `retry_after` alone asks for it again. Raises
    ValueError.
    """
    if not isinstance(result, dict) or not isinstance(result.get("id"), str):
        raise ValueError("a result has no id")  # noqa: TRY004
    status, retry_after_s = result.get("status"), result.get("retry_after")
    if retry_after_s is not None and type(retry_after_s) not in (int, float):
        raise ValueError("a retry_after is no number of seconds")
    if status is None:
        status = 200 if retry_after_s is None else 503
    if type(status) is not int or not 100 <= status < 600:
        raise ValueError("a status is no number of three digits")
    if retry_after_s is not None:
        retry_after_s = max(retry_after_s, 0)
    return result["id"], AttemptOutcome(outcome_of_status(status), status, retry_after_s, True)
