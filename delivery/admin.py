"""The delivery tables in the back office. Deliveries, attempts and listeners have composite keys,
which Django's admin cannot show; the console does. Django module.
"""

from django.contrib import admin

from delivery.models import (
    BacklogCount,
    CallbackWorker,
    ComponentHeartbeat,
    EndpointThrottle,
    Forwarder,
    Forwarding,
    RetiredPartition,
    WebProcess,
)
from eventhub.api.back_office import ReadOnly


@admin.register(Forwarding)
class ForwardingAdmin(ReadOnly):
    list_display = ("stream", "owner", "epoch", "expires_at", "sequence")
    list_select_related = ("stream",)
    search_fields = ("stream__name",)


@admin.register(Forwarder)
class ForwarderAdmin(ReadOnly):
    list_display = ("id", "started_at", "last_seen_at")


@admin.register(ComponentHeartbeat)
class ComponentHeartbeatAdmin(ReadOnly):
    list_display = ("part", "last_seen_at")


@admin.register(CallbackWorker)
class CallbackWorkerAdmin(ReadOnly):
    list_display = ("id", "last_seen_at")


@admin.register(WebProcess)
class WebProcessAdmin(ReadOnly):
    list_display = ("id", "last_seen_at")


@admin.register(BacklogCount)
class BacklogCountAdmin(ReadOnly):
    list_display = ("client_id", "zone_id", "events", "bytes")


@admin.register(EndpointThrottle)
class EndpointThrottleAdmin(ReadOnly):
    list_display = ("endpoint", "full_at")
    list_select_related = ("endpoint",)


@admin.register(RetiredPartition)
class RetiredPartitionAdmin(ReadOnly):
    list_display = ("name", "parent", "rows", "retired_at", "archive_path", "reason")
    list_filter = ("parent", "reason")
    search_fields = ("name",)
