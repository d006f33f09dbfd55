"""Event types in the back office. Django module."""

from django.contrib import admin

from eventhub.api.back_office import ReadOnly
from eventhub.types.models import EventType


@admin.register(EventType)
class EventTypeAdmin(ReadOnly):
    list_display = ("domain", "type", "version", "parent", "evolution", "zone", "declared_at")
    list_filter = ("evolution",)
    list_select_related = ("zone",)
    search_fields = ("domain", "type", "zone__name")
