"""Serializers of connectors. Django module."""

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from eventhub.api.fields import FlagField, MomentField, NameField, OneOfField, TextField
from eventhub.api.serializers import AnswerSerializer, ChangedSerializer, Serializer
from eventhub.base import limits
from registrations.connectors.kinds.registry import KINDS
from registrations.connectors.models import Connector
from registrations.connectors.selectors import STATES
from registrations.sources.serializers import MapField, PlainObjectField

ON_REFUSAL = ("stop", "set_aside")
_SETTINGS = {"help_text": "The settings of its kind: see docs/connectors.md."}
_REFUSAL = {
    "help_text": "What happens at a row of which the map makes no event: `stop` until the map or"
    " the row is changed, or `set_aside`: an event of `system` has the row, and reading goes on."
}
_URL = {
    "max_length": limits.CONNECTOR_URL_CHARS_MAX,
    "help_text": "The URL with credentials. It is stored encrypted, and not shown again.",
}


class ConnectorChangeSerializer(Serializer):
    url = TextField(required=False, **_URL)
    mapping = MapField(required=False)
    on_refusal = OneOfField(choices=ON_REFUSAL, required=False, **_REFUSAL)
    enabled = FlagField(required=False, help_text="While it is false, nothing is read.")


class NewConnectorSerializer(ConnectorChangeSerializer):
    name = NameField(help_text="Unique among the connectors of the client; the node of its events.")
    stream = NameField(help_text="The stream to which it emits.")
    kind = OneOfField(choices=tuple(KINDS), help_text="What it reads, and how.")
    url = TextField(**_URL)
    settings = PlainObjectField(**_SETTINGS)
    client = NameField(
        required=False, help_text="The client that owns it; by default the key's own client."
    )


class ConnectorErrorSerializer(Serializer):
    """What holds a connector up."""

    code = serializers.CharField(source="error")
    detail = serializers.CharField()
    since = MomentField(source="error_at", allow_null=True)


class ConnectorSerializer(ChangedSerializer, AnswerSerializer):
    client = serializers.CharField(source="client_name")
    stream = serializers.CharField(source="stream_name")
    kind = serializers.ChoiceField(choices=tuple(KINDS))
    settings = serializers.DictField(**_SETTINGS)
    mapping = MapField()
    on_refusal = serializers.ChoiceField(choices=ON_REFUSAL, **_REFUSAL)
    address = serializers.CharField(help_text="Host, port and database, without credentials.")
    state = serializers.ChoiceField(
        choices=STATES,
        help_text="`starting`: no process runs it yet; `retrying`: held up, and tried again;"
        " `stopped`: held up until something is changed; `paused`: not enabled.",
    )
    error = serializers.SerializerMethodField(help_text="What holds it up; null: nothing.")
    lag = serializers.IntegerField(
        allow_null=True,
        help_text="Rows that are still to be read, counted every"
        f" {limits.CONNECTOR_REPORT_S:.0f} seconds up to {limits.CONNECTOR_LAG_ROWS_MAX:,}; null:"
        " not known.",
    )
    caught_up_at = MomentField(allow_null=True, help_text="When there was no such row last.")
    position = serializers.CharField(help_text="Of the last row that was read; empty: none.")
    rows = serializers.IntegerField(help_text="Rows that were read.")
    refused = serializers.IntegerField(help_text="Those of them that were set aside.")
    row_at = MomentField(allow_null=True, help_text="When rows were read last.")

    class Meta:
        model = Connector
        fields = (
            *("id", "client", "name", "stream", "kind", "settings", "mapping", "on_refusal"),
            *("enabled", "address", "state", "error", "lag", "caught_up_at", "position", "rows"),
            *("refused", "row_at", "created_at", "changed_at", "changed"),
        )

    @extend_schema_field(ConnectorErrorSerializer(allow_null=True))
    def get_error(self, connector: Connector) -> ConnectorErrorSerializer | None:
        return ConnectorErrorSerializer(connector).data if connector.error else None


class ConnectorTestSerializer(Serializer):
    mapping = MapField(required=False)
    row = PlainObjectField(
        required=False, help_text="A row as JSON: its columns by name; by default without any."
    )
