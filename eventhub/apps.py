"""The composition root as Django apps: the hub's management commands, and the back office.
Django module.
"""

from django.apps import AppConfig
from django.contrib.admin.apps import SimpleAdminConfig


class EventHubConfig(AppConfig):
    name = "eventhub"
    label = "eventhub"


class BackOfficeConfig(SimpleAdminConfig):
    """Its pages are loaded with the routes, so that only web processes do."""

    default_site = "eventhub.api.back_office.BackOffice"
