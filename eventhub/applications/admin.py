"""Applications and their groups in the back office. Django module."""

from django.contrib import admin

from eventhub.api.back_office import ReadOnly
from eventhub.applications.models import Application, ApplicationGroup


@admin.register(Application)
class ApplicationAdmin(ReadOnly):
    list_display = ("name", "zone", "state", "since", "heartbeat_at", "timeout_s")
    list_filter = ("state",)
    list_select_related = ("zone",)
    search_fields = ("name", "zone__name")


@admin.register(ApplicationGroup)
class ApplicationGroupAdmin(ReadOnly):
    list_display = ("name", "zone", "state", "since")
    list_filter = ("state",)
    list_select_related = ("zone",)
    search_fields = ("name", "zone__name")
