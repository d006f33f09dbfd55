"""The composition root's Django apps: management commands and back office. Django module."""

from django.apps import AppConfig
from django.contrib.admin.apps import SimpleAdminConfig


class EventHubConfig(AppConfig):
    name = "eventhub"
    label = "eventhub"


class BackOfficeConfig(SimpleAdminConfig):
    """The back office, whose pages are loaded with the routes, so in web processes only."""

    default_site = "eventhub.api.back_office.BackOffice"
