"""The answers of the management API are those on record: status, headers and body of each call."""

import os
from collections.abc import Iterator

import pytest
import redis

from tests.acceptance import answers
from tests.acceptance.recorded import comparing
from tests.acceptance.recorded.every import Operation, operations
from tests.live import live_hub

SHOWN_MAX = 20
ENDLESS = "GET /v1/sessions/{session}/events"  # a success has no end, so none is on record


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Iterator[answers.Recording]:
    """Make all calls on a hub of its own. Redis is shared with hubs of tests before, whose
    transient streams have the same numbers.
    """
    with redis.Redis.from_url(os.environ["REDIS_URL"]) as client:
        for key in [*client.scan_iter("eventhub:{t*}:*")]:
            client.delete(key)
    with live_hub(tmp_path_factory.mktemp("recorded"), count=1) as hub:
        yield answers.recorded(hub)


@pytest.mark.slow
def test_answers_are_those_on_record(recording: answers.Recording) -> None:
    found = comparing.differences(comparing.read(answers.RECORDING), recording.records)
    shown = "\n".join(found[:SHOWN_MAX])
    assert not found, (
        f"{len(found)} of {len(recording.records)} answers are not those on record:\n{shown}\n"
        "If this is what you want, record again: python -m tests.acceptance.answers"
    )


def test_answers_are_those_that_the_openapi_document_describes(
    recording: answers.Recording,
) -> None:
    assert not recording.undocumented, "\n".join(recording.undocumented[:SHOWN_MAX])


@pytest.mark.req("EMC-09")
def test_every_reply_good_or_refused_has_the_last_sequence_of_its_stream(
    recording: answers.Recording,
) -> None:
    assert not recording.misplaced, "\n".join(recording.misplaced[:SHOWN_MAX])


@pytest.mark.req("EMC-09")
def test_every_operation_is_on_record_with_a_success_and_a_refusal() -> None:
    patterns = {operation: operation.pattern for operation in operations()}
    outcomes: dict[str, set[bool]] = {_named(operation): set() for operation in patterns}
    for record in comparing.read(answers.RECORDING):
        for operation, pattern in patterns.items():
            if pattern.fullmatch(record["line"]):
                outcomes[_named(operation)].add(record["status"] < 400)
    assert outcomes.pop(ENDLESS) == {False}
    assert {name for name, found in outcomes.items() if found != {True, False}} == set()


def _named(operation: Operation) -> str:
    return f"{operation.method} {operation.route}"
