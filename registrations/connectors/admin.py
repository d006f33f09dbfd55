"""Connectors in the back office. Django module."""

from django.contrib import admin

from eventhub.api.back_office import ReadOnly
from registrations.connectors.models import Connector


@admin.register(Connector)
class ConnectorAdmin(ReadOnly):
    list_display = ("name", "client", "stream", "kind", "enabled")
    list_filter = ("kind", "enabled")
    list_select_related = ("client", "stream")
    search_fields = ("name", "client__name")
    exclude = ("sealed",)
