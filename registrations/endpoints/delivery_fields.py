"""The fields of the API that say how an endpoint receives events: in which order, and in batches.
Django module.
"""

from typing import Any

from rest_framework import serializers

from eventhub.api.fields import TextField, WholeField
from eventhub.api.serializers import Serializer
from eventhub.base import limits
from eventhub.base.errors import EventHubError
from registrations.endpoints.order_key import order_path

BATCH_COLUMNS = ("batch_events_max", "batch_bytes_max", "batch_linger_ms")
_NO_BATCH = (None, limits.BATCH_BYTES_DEFAULT, 0)


class OrderKeyField(TextField):
    """The path of the key by which an endpoint is ordered; empty: the whole stream."""

    def __init__(self, **options: Any) -> None:
        options.setdefault(
            "help_text",
            "By what an ordered endpoint is ordered: an attribute (`customer.id`) or a field of the"
            " envelope (`@key`). Empty: by the whole stream.",
        )
        super().__init__(allow_blank=True, max_length=limits.TEXT_CHARS_MAX, **options)

    def to_internal_value(self, data: Any) -> str:
        text: str = super().to_internal_value(data)
        try:
            if text:
                order_path(text)
        except EventHubError as error:
            raise serializers.ValidationError(error.message) from None
        return text


class BatchSerializer(Serializer):
    """How many events are posted in one request; null: one, not as a batch."""

    events_max = WholeField(
        source="batch_events_max",
        min_value=limits.BATCH_EVENTS_MIN,
        max_value=limits.BATCH_EVENTS_MAX,
        help_text="Events in one request at most.",
    )
    bytes_max = WholeField(
        source="batch_bytes_max",
        default=limits.BATCH_BYTES_DEFAULT,
        min_value=limits.BATCH_BYTES_MIN,
        max_value=limits.BATCH_BYTES_MAX,
        help_text="Bytes of a request's body at most; a single event may exceed it.",
    )
    linger_ms = WholeField(
        source="batch_linger_ms",
        default=0,
        min_value=0,
        max_value=limits.BATCH_LINGER_MS_MAX,
        help_text="How long an event waits for others at most.",
    )

    def run_validation(self, data: Any = serializers.empty) -> Any:
        if data is None:
            return dict(zip(BATCH_COLUMNS, _NO_BATCH, strict=True))
        return super().run_validation(data)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Return all fields: a change replaces the whole, although DRF takes it for partial."""
        if "batch_events_max" not in attrs:
            raise serializers.ValidationError({"events_max": "Missing."}, "required")
        return {**dict(zip(BATCH_COLUMNS, _NO_BATCH, strict=True)), **attrs}

    @classmethod
    def represent(cls, item: Any) -> Any:
        return None if item.batch_events_max is None else super().represent(item)
