"""Timers in the back office. Django module."""

from django.contrib import admin

from eventhub.api.back_office import ReadOnly
from registrations.timers.models import Timer


@admin.register(Timer)
class TimerAdmin(ReadOnly):
    list_display = ("handle", "client", "stream", "next_at", "suspended", "fired")
    list_filter = ("suspended",)
    list_select_related = ("client", "stream")
    search_fields = ("handle", "client__name")
