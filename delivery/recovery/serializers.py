"""The JSON form of requests to send deliveries again. Django module."""

from eventhub.api.fields import FlagField
from eventhub.api.serializers import Serializer


class ResendSerializer(Serializer):
    force = FlagField(
        default=False,
        help_text="Also send a delivery that was delivered or whose event has expired, and end a"
        " pause of the endpoint.",
    )
    new_id = FlagField(
        default=False, help_text="Send it under a new webhook-id, so that receivers handle it again."
    )
