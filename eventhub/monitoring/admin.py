"""Members in the back office. Django module."""

from django.contrib import admin

from eventhub.api.back_office import ReadOnly
from eventhub.monitoring.models import Member


@admin.register(Member)
class MemberAdmin(ReadOnly):
    list_display = ("id", "kind", "node", "pid", "version", "started_at", "last_seen_at")
    list_filter = ("kind", "node")
