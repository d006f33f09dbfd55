"""Views of the audit trail. Django module."""

import ipaddress
from typing import Any

from rest_framework import serializers

from eventhub.api.fields import MomentField
from eventhub.api.filters import (
    FilterSet,
    FlagFilter,
    MomentFilter,
    NameFilter,
    TextFilter,
    WordFilter,
)
from eventhub.api.pagination import NUMBER, PreparedPage, read_page
from eventhub.api.permissions import ReadsSystem
from eventhub.api.resource import ResourceView, operation
from eventhub.api.serializers import Serializer
from eventhub.base import errors
from eventhub.eventlog.models import EventRow
from eventhub.streams import audit
from eventhub.streams.audit import Act


class NetworkFilter(TextFilter):
    """An IP address, or a network in CIDR notation."""

    def read(self, text: str) -> audit.Network:
        try:
            return ipaddress.ip_network(text, strict=False)
        except ValueError:
            raise errors.InvalidField(
                "This must be an IP address, or a network such as 10.1.0.0/16."
            ) from None


class AuditFilters(FilterSet):
    kind = WordFilter(
        audit.KINDS,
        help_text="Only acts of this kind of caller; by default all but those of the `hub` itself.",
    )
    operator = TextFilter(help_text="Only acts of this operator.")
    key = NameFilter(help_text="Only acts with the key of this public id.")
    client = NameFilter(help_text="Only acts with a key of this client.")
    command = NameFilter(help_text="Only acts of this command of `manage.py`.")
    address = NetworkFilter(help_text="Only acts from this IP address or network.")
    request_id = TextFilter(help_text="Only acts of this request.")
    correlation = TextFilter(help_text="Only acts of this action, as in `EventHub-Action`.")
    type = TextFilter(help_text="Only acts of this type; `stream.*` is those that begin so.")
    resource = TextFilter(
        help_text="Only acts on resources of this kind, `stream`, or on one, `stream:orders`."
    )
    since = MomentFilter(help_text="Only acts of then or later.")
    until = MomentFilter(help_text="Only acts of then or earlier.")
    all_zones = FlagFilter(help_text="Operators only: the acts in all zones.")


class AuditResourceSerializer(Serializer):
    kind = serializers.CharField(help_text="The first part of the type.")
    name = serializers.CharField(help_text="Its name or id; empty if the act concerns none.")


class ActSerializer(Serializer):
    """An act: an event of `system` with its caller."""

    sequence = serializers.IntegerField(help_text="The sequence of its event in `system`.")
    at = MomentField()
    type = serializers.CharField(help_text="The type of the event.")
    zone = serializers.CharField(allow_null=True, help_text="null: it concerns the whole hub.")
    resource = AuditResourceSerializer()
    by = serializers.DictField(
        child=serializers.CharField(),
        help_text="The caller: its `kind`, and of `operator`, `key`, `client`, `session`,"
        " `command`, `address`, `request_id` those that apply.",
    )
    correlation = serializers.CharField(help_text="The id of the action.")
    attributes = serializers.DictField(help_text="The other attributes of the event.")


class AuditedActs(ResourceView):
    """The audit trail: acts of callers, from the events of `system`."""

    unknown = errors.UnknownEvent
    lookup_url_kwarg = "sequence"
    permission_classes = (ReadsSystem,)
    queryset = EventRow.objects.none()
    serializer_class = ActSerializer
    filterset_class = AuditFilters

    @operation("List who changed what, newest first")
    def get_queryset(self) -> PreparedPage:
        asked = self.filter_values
        if asked["all_zones"]:
            self.actor.require_operator()
        return audit.trail(actor=self.actor, filters=asked, page=read_page(self.request))

    def filter_queryset(self, queryset: Any) -> Any:
        return queryset  # already filtered

    @operation("Show an act with its event")
    def get_object(self) -> Act:
        text = self.kwargs["sequence"]
        sequence = int(text) if NUMBER.fullmatch(text) else None
        return audit.find_act(actor=self.actor, sequence=sequence)
