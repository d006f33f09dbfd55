"""The API of the limits of tenants. Django module."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers

from delivery.tenant_limits import services
from eventhub.access.names import valid_name
from eventhub.access.quotas import KINDS, OF_ZONES
from eventhub.api.fields import WholeField
from eventhub.api.permissions import IsAuthenticated, IsOperator
from eventhub.api.resource import ResourceView, operation
from eventhub.api.serializers import Serializer
from eventhub.base import errors, limits

_CLIENT = OpenApiParameter(
    "client", str, description="The client; by default the key's own, for operators the zone."
)


class LimitSerializer(Serializer):
    """A limit and its present use."""

    quota = serializers.IntegerField(allow_null=True, help_text="Set by an operator; null: none.")
    limit = serializers.IntegerField(
        allow_null=True, help_text="In force: the quota, or the bound of the hub; null: none."
    )
    used = serializers.IntegerField(
        allow_null=True,
        help_text="The present use. Of `events_per_s`: about the last second; null without a quota."
        " Of backlogs: as last counted.",
    )


class ClientLimitsSerializer(Serializer):
    """The limits of a client."""

    events_per_s = LimitSerializer(help_text="Events that may be emitted in a second.")
    sockets = LimitSerializer(
        help_text="Websockets, and listeners over HTTP, at a time in all web processes."
    )
    registrations = LimitSerializer()
    endpoints = LimitSerializer()
    timers = LimitSerializer()
    patterns = LimitSerializer()
    backlog_events = LimitSerializer(help_text="Pending deliveries.")
    backlog_bytes = LimitSerializer(
        help_text="Bytes of pending deliveries, including their events."
    )


class ZoneLimitsSerializer(ClientLimitsSerializer):
    """The limits of a zone as a whole."""

    stored_bytes = LimitSerializer(
        help_text="Bytes of the zone's events in the database, without indexes."
    )


class TenantLimitsSerializer(Serializer):
    """The limits that apply to a client: its own, and those of the zone as a whole."""

    name = serializers.CharField(allow_null=True, help_text="The client.")
    client = ClientLimitsSerializer(allow_null=True)
    zone = ZoneLimitsSerializer(allow_null=True, help_text="null: for managers of the zone only.")


def _quota(most: int, *, least: int = 1, **options: Any) -> WholeField:
    return WholeField(min_value=least, max_value=most, allow_null=True, required=False, **options)


class QuotasSerializer(Serializer):
    """Quotas; those that are not given, or null, are removed."""

    events_per_s = _quota(limits.EMIT_RATE_MAX)
    registrations = _quota(limits.REGISTRATIONS_PER_CLIENT_MAX * limits.CLIENTS_PER_ZONE_MAX)
    endpoints = _quota(limits.ENDPOINTS_PER_CLIENT_MAX * limits.CLIENTS_PER_ZONE_MAX)
    timers = _quota(limits.TIMERS_PER_CLIENT_MAX * limits.CLIENTS_PER_ZONE_MAX)
    patterns = _quota(limits.PATTERNS_PER_CLIENT_MAX * limits.CLIENTS_PER_ZONE_MAX)
    sockets = _quota(limits.SOCKETS_QUOTA_MAX)
    backlog_events = _quota(limits.BACKLOG_EVENTS_MAX)
    backlog_bytes = _quota(limits.RETAIN_BYTES_MAX, least=limits.BACKLOG_BYTES_MIN)
    stored_bytes = _quota(
        limits.RETAIN_BYTES_MAX, least=limits.STORED_BYTES_QUOTA_MIN, help_text="Only for a zone."
    )


class TenantLimits(ResourceView):
    """The limits of a zone and its clients."""

    permission_classes = (IsAuthenticated,)
    serializer_class = TenantLimitsSerializer

    @property
    def client(self) -> str | None:
        name = self.request.query_params.get("client")
        return None if name is None else valid_name(name, field="client")

    @operation(
        "Show the limits that apply to a client, and their present use",
        *(errors.InvalidName, errors.NotFound, errors.Forbidden),
        parameters=(_CLIENT,),
    )
    def get_object(self) -> dict[str, Any]:
        return services.limits_of(actor=self.actor, client=self.client)

    @operation(
        "Set the quotas of a client, or without `client` of the zone as a whole",
        *(errors.InvalidName, errors.NotFound),
        body=QuotasSerializer,
        parameters=(_CLIENT,),
        permissions=(IsOperator,),
    )
    def perform_update(self, body: dict[str, Any]) -> tuple[dict[str, Any], bool]:
        values = {kind: body.get(kind) for kind in KINDS}
        if self.client is not None:
            for kind in OF_ZONES:
                if values[kind] is not None:
                    raise errors.InvalidField("Only a zone has this quota.", field=kind)
        services.set_quotas(actor=self.actor, client=self.client, values=values)
        return services.limits_of(actor=self.actor, client=self.client), False
