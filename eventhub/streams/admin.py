"""The log in the back office, without events: their key has several columns, which Django's admin
does not support; the console shows them. Django module.
"""

from django.contrib import admin

from eventhub.api.back_office import ReadOnly
from eventhub.eventlog.models import (
    ArchiveAttempt,
    ArchiverLease,
    EventPartition,
    LogState,
    Segment,
    Stream,
    StreamHead,
)


@admin.register(Stream)
class StreamAdmin(ReadOnly):
    list_display = ("id", "name", "zone", "durability", "keyed", "archive", "hold", "created_at")
    list_filter = ("durability", "keyed", "archive", ("hold", admin.EmptyFieldListFilter))
    list_select_related = ("zone",)
    search_fields = ("name", "zone__name")


@admin.register(StreamHead)
class HeadAdmin(ReadOnly):
    list_display = ("stream", "segment_id", "first", "sequence", "bytes")
    list_select_related = ("stream",)
    search_fields = ("stream__name",)


@admin.register(Segment)
class SegmentAdmin(ReadOnly):
    list_display = ("id", "uuid", "stream", "first", "last", "bytes", "tier", "opened_at")
    list_filter = ("tier", ("last", admin.EmptyFieldListFilter), "opened_at")
    list_select_related = ("stream",)
    search_fields = ("=uuid", "stream__name")


@admin.register(EventPartition)
class EventPartitionAdmin(ReadOnly):
    list_display = ("id", "created_at", "moved_bytes")


@admin.register(LogState)
class LogStateAdmin(ReadOnly):
    list_display = ("history", "current_partition", "quota_bytes", "booted_at")


@admin.register(ArchiverLease)
class ArchiverAdmin(ReadOnly):
    list_display = ("owner", "until")


@admin.register(ArchiveAttempt)
class ArchiveAttemptAdmin(ReadOnly):
    list_display = ("segment", "attempts", "reason", "attempted_at", "retry_at")
    list_filter = ("reason",)
    list_select_related = ("segment",)
