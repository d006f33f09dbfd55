"""Pattern groups and patterns in the back office. Django module."""

from django.contrib import admin

from eventhub.api.back_office import ReadOnly
from registrations.pattern_groups.models import PatternGroup, StoredPattern


@admin.register(PatternGroup)
class PatternGroupAdmin(ReadOnly):
    list_display = ("name", "client", "patterns", "created_at")
    list_select_related = ("client",)
    search_fields = ("name", "client__name")


@admin.register(StoredPattern)
class StoredPatternAdmin(ReadOnly):
    list_display = ("name", "group", "client", "created_at")
    list_select_related = ("group", "client")
    search_fields = ("name", "group__name", "client__name")
