"""The composition root as a Django app: its management commands."""

from django.apps import AppConfig


class EventHubConfig(AppConfig):
    name = "eventhub"
    label = "eventhub"
