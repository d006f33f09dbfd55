"""The shapes of deliveries and their tries."""

from typing import Any

import orjson
from rest_framework import serializers

from delivery.selectors import DeliveryRow, TryRow
from eventhub.event.json_codec import time_text

STATES = ("pending", "delivered", "dead", "cancelled", "dropped", "expired")
ENDED = STATES[2:]  # without being delivered: these are listed for all endpoints together


class GapSerializer(serializers.Serializer):
    first = serializers.IntegerField()
    last = serializers.IntegerField()
    why = serializers.CharField(help_text="`age`, `size`, `count`, `quota`, `disk`, `backlog`, …")


class DeliverySerializer(serializers.Serializer):
    id = serializers.CharField()
    endpoint = serializers.IntegerField()
    stream = serializers.CharField()
    segment = serializers.UUIDField()
    sequence = serializers.IntegerField()
    run = serializers.IntegerField(help_text="0 for what was delivered live.")
    registrations = serializers.ListField(
        child=serializers.IntegerField(), help_text="The registrations that matched, ascending."
    )
    state = serializers.ChoiceField(choices=STATES)
    attempts = serializers.IntegerField(help_text="Tries so far.")
    next_attempt_at = serializers.DateTimeField(
        allow_null=True, help_text="While it is being tried: when that is given up."
    )
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)
    gap = GapSerializer(
        allow_null=True,
        help_text="Events that were dropped before they were delivered: the endpoint is told so.",
    )


class TrySerializer(serializers.Serializer):
    number = serializers.IntegerField()
    at = serializers.DateTimeField(help_text="When the request was sent.")
    outcome = serializers.CharField(
        help_text="`delivered`, or why not: `status`, `redirect`, `timeout`, `refused_address`, …"
    )
    status = serializers.IntegerField(allow_null=True, help_text="Of the answer.")
    duration_ms = serializers.IntegerField()
    url = serializers.CharField()
    request = serializers.CharField(help_text="The request's headers, without the signature.")
    response = serializers.CharField(
        help_text="The answer's headers and the beginning of its body, or the error."
    )


class OneDeliverySerializer(DeliverySerializer):
    event = serializers.DictField(
        allow_null=True, help_text="The event; null when it is not held any more."
    )
    tries = TrySerializer(many=True, help_text="The newest first.")


def delivery_json(row: DeliveryRow) -> dict[str, Any]:
    return {
        "id": str(row.id),
        "endpoint": row.id.endpoint,
        "stream": row.stream,
        "segment": row.segment,
        "sequence": row.id.sequence,
        "run": row.id.run,
        "registrations": row.registrations,
        "state": row.state,
        "attempts": row.attempts,
        "next_attempt_at": _time(row.next_attempt_at_us),
        "created_at": _time(row.created_at_us),
        "finished_at": _time(row.finished_at_us),
        "gap": _gap_json(row),
    }


def _gap_json(row: DeliveryRow) -> dict[str, Any] | None:
    if row.gap_first is None:
        return None
    return {"first": row.gap_first, "last": row.id.sequence, "why": row.gap_why}


def one_delivery_json(row: DeliveryRow, event: bytes | None, tries: list[TryRow]) -> dict[str, Any]:
    return {
        **delivery_json(row),
        "event": None if event is None else orjson.loads(event),
        "tries": [_try_json(each) for each in tries],
    }


def _try_json(row: TryRow) -> dict[str, Any]:
    fields = row._asdict()
    at_us = fields.pop("at_us")
    return {"number": fields.pop("number"), "at": _time(at_us), **fields}


def _time(time_us: int | None) -> str | None:
    return None if time_us is None else time_text(time_us)
