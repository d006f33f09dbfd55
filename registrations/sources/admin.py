"""Sources in the back office. Django module."""

from django.contrib import admin

from eventhub.api.back_office import ReadOnly
from registrations.sources.models import Source


@admin.register(Source)
class SourceAdmin(ReadOnly):
    list_display = ("name", "client", "stream", "provider", "enabled")
    list_filter = ("provider", "enabled")
    list_select_related = ("client", "stream")
    search_fields = ("name", "client__name")
    exclude = ("token_digest", "former_digest")
