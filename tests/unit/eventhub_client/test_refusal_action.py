"""The action of an outbox after each refusal, as a table."""

from typing import Any

import pytest
from eventhub_client.errors import refusal
from eventhub_client.refusal_action import RefusalAction, action_after

from eventhub.base import limits

HOLD = RefusalAction("block", after_s=limits.OUTBOX_HELD_S)

TABLE: list[tuple[int, str, dict[str, Any], int, RefusalAction]] = [
    (503, "database_unavailable", {}, 3, RefusalAction("wait", after_s=2.0)),
    (503, "outcome_unknown", {}, 3, RefusalAction("wait", after_s=2.0)),
    (507, "storage_full", {}, 3, RefusalAction("wait", after_s=2.0)),
    (429, "too_many_requests", {}, 1, RefusalAction("wait", after_s=2.0)),
    (502, "", {}, 1, RefusalAction("wait", after_s=2.0)),
    (500, "internal", {}, 1, RefusalAction("wait", after_s=2.0)),
    (401, "invalid_credentials", {}, 3, HOLD),
    (403, "forbidden", {}, 3, HOLD),
    (404, "unknown_stream", {}, 1, HOLD),
    (422, "type_violation", {"index": 1, "field": "a"}, 3, RefusalAction("dead_letter", 1)),
    (400, "missing_field", {"index": 0}, 3, RefusalAction("dead_letter", 0)),
    (400, "missing_field", {}, 3, RefusalAction("halve")),
    (400, "malformed_json", {}, 1, RefusalAction("dead_letter")),
    (400, "missing_field", {"index": 7}, 3, RefusalAction("halve")),
    (413, "body_too_large", {}, 2, RefusalAction("halve")),
    (413, "event_too_large", {"index": 1}, 2, RefusalAction("dead_letter", 1)),
    (409, "producer_window", {"index": 2}, 3, RefusalAction("renumber", 2)),
    (409, "producer_window", {}, 1, RefusalAction("renumber")),
    (409, "producer_window", {}, 3, RefusalAction("halve")),
    (409, "something_else", {"index": 1}, 3, RefusalAction("dead_letter", 1)),
]


@pytest.mark.parametrize(("status", "code", "position", "count", "verdict"), TABLE)
def test_each_refusal_has_one_consequence(
    status: int, code: str, position: dict[str, Any], count: int, verdict: RefusalAction
) -> None:
    problem = refusal({"status": status, "code": code, "position": position}, retry_after_s=2.0)
    assert action_after(problem, count) == verdict
