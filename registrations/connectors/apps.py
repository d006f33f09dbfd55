"""Connectors as a Django app. Django module."""

from django.apps import AppConfig


class ConnectorsConfig(AppConfig):
    name = "registrations.connectors"
    label = "connectors"
    verbose_name = "Connectors: events read from other systems"
