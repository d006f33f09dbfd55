"""The answers of the management API are those on record: status, headers and body of each call."""

import os
from pathlib import Path

import redis

from tests.acceptance import answers
from tests.acceptance.recorded import comparing
from tests.acceptance.recorded.every import operations
from tests.live import live_hub

SHOWN_MAX = 20


def test_answers_of_the_management_api_are_those_on_record(tmp_path: Path) -> None:
    """Redis is shared with hubs of tests before, whose transient streams have the same numbers."""
    with redis.Redis.from_url(os.environ["REDIS_URL"]) as client:
        for key in [*client.scan_iter("eventhub:{t*}:*")]:
            client.delete(key)
    with live_hub(tmp_path) as hub:
        now, undocumented = answers.recorded(hub)
    shown = "\n".join(undocumented[:SHOWN_MAX])
    assert not undocumented, f"The OpenAPI document does not say what was answered:\n{shown}"
    found = comparing.differences(comparing.read(answers.RECORDING), now)
    shown = "\n".join(found[:SHOWN_MAX])
    assert not found, (
        f"{len(found)} of {len(now)} answers are not those on record:\n{shown}\n"
        "If this is what you want, record again: python -m tests.acceptance.answers"
    )


def test_every_operation_is_on_record_with_a_success_and_a_refusal() -> None:
    patterns = {operation: operation.pattern for operation in operations()}
    outcomes: dict[str, set[bool]] = {str(operation): set() for operation in patterns}
    for record in comparing.read(answers.RECORDING):
        for operation, pattern in patterns.items():
            if pattern.fullmatch(record["line"]):
                outcomes[str(operation)].add(record["status"] < 400)
    assert {name for name, found in outcomes.items() if found != {True, False}} == set()
