"""Members of the hub, connected clients and traces as a Django app. Django module."""

from django.apps import AppConfig


class MonitoringConfig(AppConfig):
    name = "eventhub.monitoring"
    label = "monitoring"
    verbose_name = "Members, presence and traces"
