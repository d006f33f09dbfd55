"""Serializers of sessions and session groups. Django module."""

import re
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from eventhub.api.fields import FlagField, MomentField, NameField, OneOfField, TextField, WholeField
from eventhub.api.serializers import AnswerSerializer, ChangedSerializer, Serializer
from eventhub.base import limits
from eventhub.sessions.models import (
    DeliveryOrder,
    Kind,
    Quality,
    Session,
    SessionClaim,
    SessionCursor,
    SessionGroup,
    Sharing,
)
from eventhub.streams.serializers import CursorSerializer
from registrations.endpoints.delivery_fields import OrderKeyField

_TYPE = re.compile(r"(?:[^\s*]+\.)?\*|[^\s*]+")
_SUSPENDED = "While it is true, the session emits nothing, and its registrations match nothing."
_GROUP_SUSPENDED = "While it is true, the group's registrations match nothing."
_DISCONNECTED = "While it is true, nothing is delivered; matching goes on."
_QUALITY = "`reliable`: what was not acknowledged is delivered again; `best_effort`: it is lost."
_ORDER = "The order in which held events are delivered."
_SHARING = "`every`: each member gets every event; `one`: one member gets it. Immutable."
_SHARE_BY = (
    "With `one`: the path of a key, an attribute (`customer.id`) or a field of the envelope"
    " (`@key`). The events of one key go to one member at a time, in order. Empty: to any."
    " Immutable."
)
_WINDOW = "Events that may be delivered and not acknowledged."
_ATTEMPTS = (
    "How often an event is handed out; if it is not acknowledged then, it is skipped. Null: without"
    " end."
)


class SessionNameField(NameField):
    """The name of a session or of a session group; a path has it, or the id."""

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if text.isdigit():
            raise serializers.ValidationError(
                "A name of digits alone would be taken for an id; add another character."
            )
        return text


class SuppliedTypeSerializer(Serializer):
    """A type that a supplier session emits."""

    domain = TextField(max_length=limits.NAME_CHARS_MAX, allow_blank=True)
    type = TextField(
        max_length=limits.NAME_CHARS_MAX,
        help_text="A type, all types below one (`Mail.*`), or all types of the domain (`*`).",
    )

    def validate_type(self, value: str) -> str:
        if not _TYPE.fullmatch(value):
            raise serializers.ValidationError(
                "A star stands at the end, alone or after a dot, as in Mail.*."
            )
        return value


@extend_schema_field(
    {
        "oneOf": [
            {"type": "string"},
            {
                "type": "object",
                "required": ["type"],
                "properties": {"domain": {"type": "string"}, "type": {"type": "string"}},
            },
        ]
    }
)
class OrderedTypeField(serializers.JSONField):
    """A type, or an object with `domain` and `type`."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, str) and data and len(data) <= limits.NAME_CHARS_MAX:
            return data
        if not isinstance(data, dict):
            raise serializers.ValidationError("This is a type, or an object with `type`.")
        found = SuppliedTypeSerializer(data={"domain": "", **data})
        found.is_valid(raise_exception=True)
        return dict(found.validated_data)


class OrderOptionsSerializer(Serializer):
    """Parameters of an order; those that it does not use are ignored."""

    occur_delay_ms = WholeField(
        required=False,
        min_value=0,
        max_value=limits.ORDER_HOLD_MS_MAX,
        help_text="Of `timestamp`: how much later an event with an earlier timestamp may arrive.",
    )
    hold_ms = WholeField(
        required=False,
        min_value=0,
        max_value=limits.ORDER_HOLD_MS_MAX,
        help_text="How long an event is held for those that come before it, at most.",
    )
    types = serializers.ListField(
        required=False,
        child=OrderedTypeField(),
        max_length=limits.SESSION_ORDER_NAMES_MAX,
        help_text="Of `type`: the types in their order; others follow in alphabetical order.",
    )
    suppliers = serializers.ListField(
        required=False,
        child=NameField(),
        max_length=limits.SESSION_ORDER_NAMES_MAX,
        help_text="Of `supplier`: the clients in their order; others follow.",
    )


class SessionDeliverySerializer(Serializer):
    """The settings of delivery that apply to a session."""

    disconnected = FlagField(help_text=_DISCONNECTED)
    quality = OneOfField(choices=Quality.values, help_text=_QUALITY)
    order = OneOfField(choices=DeliveryOrder.values, help_text=_ORDER)
    order_options = OrderOptionsSerializer()
    window = WholeField(help_text=_WINDOW)
    attempts_max = WholeField(allow_null=True, help_text=_ATTEMPTS)


class SessionGroupChangeSerializer(Serializer):
    suspended = FlagField(required=False, help_text=_GROUP_SUSPENDED)
    disconnected = FlagField(required=False, help_text=_DISCONNECTED)
    quality = OneOfField(choices=Quality.values, required=False, help_text=_QUALITY)
    order = OneOfField(choices=DeliveryOrder.values, required=False, help_text=_ORDER)
    order_options = OrderOptionsSerializer(required=False)
    window = WholeField(
        required=False, min_value=1, max_value=limits.SESSION_WINDOW_MAX, help_text=_WINDOW
    )
    attempts_max = WholeField(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=limits.SESSION_ATTEMPTS_MAX,
        help_text=_ATTEMPTS,
    )


class NewSessionGroupSerializer(SessionGroupChangeSerializer):
    name = SessionNameField(help_text="Unique among the zone's session groups; not digits alone.")
    sharing = OneOfField(choices=Sharing.values, required=False, help_text=_SHARING)
    share_by = OrderKeyField(required=False, help_text=_SHARE_BY)
    client = NameField(
        required=False, help_text="The client that owns it; by default the key's own client."
    )


class SessionChangeSerializer(SessionGroupChangeSerializer):
    suspended = FlagField(required=False, help_text=_SUSPENDED)
    supplies = serializers.ListField(
        required=False,
        child=SuppliedTypeSerializer(),
        min_length=1,
        max_length=limits.SESSION_SUPPLIES_MAX,
        help_text="The types that a supplier session emits.",
    )
    group = NameField(
        required=False,
        allow_null=True,
        help_text="A session group, whose settings of delivery then apply; null: none.",
    )


class NewSessionSerializer(SessionChangeSerializer):
    name = SessionNameField(help_text="Unique among the client's sessions; not digits alone.")
    kind = OneOfField(choices=Kind.of_clients(), help_text="What the session is for; immutable.")
    client = NameField(
        required=False, help_text="The client that owns it; by default the key's own client."
    )


class SessionGroupSerializer(ChangedSerializer, AnswerSerializer):
    client = serializers.CharField(source="client_name")
    suspended = serializers.BooleanField(help_text=_GROUP_SUSPENDED)
    order_options = OrderOptionsSerializer()
    sharing = OneOfField(choices=Sharing.values, help_text=_SHARING)
    share_by = serializers.CharField(help_text=_SHARE_BY)
    sessions = serializers.IntegerField(help_text="Number of member sessions.")
    lag = serializers.IntegerField(
        allow_null=True,
        help_text="With `one`: events of its streams after its positions, whether they match or"
        " not. Null: each member has positions of its own.",
    )
    claims = serializers.IntegerField(
        source="in_flight",
        allow_null=True,
        help_text="With `one`: events that its members were handed out and have not acknowledged.",
    )
    registrations = serializers.IntegerField(help_text="Number of live registrations.")

    class Meta:
        model = SessionGroup
        fields = (
            *("id", "client", "name", "suspended", "disconnected", "quality", "order"),
            *("order_options", "window", "attempts_max", "sharing", "share_by", "sessions"),
            *("lag", "claims", "registrations", "created_at", "changed"),
        )


class SessionSerializer(ChangedSerializer, AnswerSerializer):
    client = serializers.CharField(source="client_name")
    kind = OneOfField(choices=Kind.of_clients(), help_text="What the session is for.")
    group = serializers.CharField(source="group_name", allow_null=True)
    supplies = SuppliedTypeSerializer(many=True)
    suspended = serializers.BooleanField(help_text=_SUSPENDED)
    order_options = OrderOptionsSerializer()
    delivery = SessionDeliverySerializer(
        allow_null=True,
        help_text="The settings of delivery that apply: of a member those of its group. Null unless"
        " it is a consumer session.",
    )
    connected_at = MomentField(
        allow_null=True,
        help_text="Since when a connection serves it; null: none does, also while it is pulled.",
    )
    connected_process = serializers.CharField(
        allow_null=True,
        help_text="The process of the hub that has the connection: its node and its process id, as"
        " in `GET /v1/members`.",
    )
    lag = serializers.IntegerField(
        allow_null=True,
        help_text="Events of its streams after its positions, whether they match or not; null"
        " unless it is a consumer session whose delivery is `reliable`.",
    )
    claims = serializers.IntegerField(
        source="in_flight",
        help_text="Events that it was handed out and has not acknowledged, also of its group.",
    )
    registrations = serializers.IntegerField(
        help_text="Number of its live registrations, without those of its group."
    )

    class Meta:
        model = Session
        fields = (
            *("id", "client", "name", "kind", "group", "supplies", "suspended", "disconnected"),
            *("quality", "order", "order_options", "window", "attempts_max", "delivery"),
            *("connected_at", "connected_process", "lag", "claims", "registrations"),
            *("created_at", "changed"),
        )


class SessionPositionSerializer(AnswerSerializer):
    """The saved position of a consumer session in a stream of its registrations."""

    stream = serializers.CharField(source="stream_name")
    cursor = CursorSerializer(
        source="*", help_text="Every matching event up to it is acknowledged."
    )
    acknowledged = serializers.ListField(
        child=serializers.IntegerField(), help_text="Acknowledged sequences above it."
    )
    last = serializers.IntegerField(help_text="The last sequence of the stream.")
    lag = serializers.IntegerField(
        help_text="Events of the stream after the cursor, whether they match or not."
    )

    class Meta:
        model = SessionCursor
        fields = ("stream", "cursor", "acknowledged", "last", "lag", "saved_at")


class SessionClaimSerializer(AnswerSerializer):
    """An event that was handed out to a session and is not acknowledged."""

    stream = serializers.CharField(source="stream_name")
    segment = serializers.CharField()
    attempt = serializers.IntegerField(source="attempts", help_text="How often it was handed out.")
    holder = serializers.CharField(
        source="holder_name",
        help_text="The session that has it: of a group that shares, the member.",
    )
    claimed_until = MomentField(
        help_text="Nobody else gets it before; after that it is handed out again."
    )

    class Meta:
        model = SessionClaim
        fields = ("id", "stream", "segment", "sequence", "attempt", "holder", "claimed_until")
