"""Sessions and session groups in the back office. Django module."""

from django.contrib import admin

from eventhub.api.back_office import ReadOnly
from eventhub.sessions.models import Session, SessionGroup


@admin.register(SessionGroup)
class SessionGroupAdmin(ReadOnly):
    list_display = ("name", "zone", "client", "suspended", "disconnected", "quality", "order")
    list_filter = ("suspended", "disconnected", ("deleted_at", admin.EmptyFieldListFilter))
    list_select_related = ("zone", "client")
    search_fields = ("name", "client__name")


@admin.register(Session)
class SessionAdmin(ReadOnly):
    list_display = ("name", "client", "kind", "group", "suspended", "disconnected", "attached_at")
    list_filter = ("kind", "suspended", "disconnected", ("deleted_at", admin.EmptyFieldListFilter))
    list_select_related = ("client", "group")
    search_fields = ("name", "client__name")
