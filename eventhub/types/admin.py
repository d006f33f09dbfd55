"""Event types in the back office."""

from django.contrib import admin

from eventhub.access.backoffice import ReadOnly
from eventhub.types.models import EventType


@admin.register(EventType)
class EventTypeAdmin(ReadOnly):
    list_display = ("domain", "type", "version", "parent", "evolution", "zone", "declared_at")
    list_filter = ("evolution",)
    list_select_related = ("zone",)
    search_fields = ("domain", "type", "zone__name")
