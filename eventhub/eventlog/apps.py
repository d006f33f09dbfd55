"""The log's tables are made by Django's migrations and used by plain SQL only: this app has no
models.
"""

from django.apps import AppConfig


class EventLogConfig(AppConfig):
    name = "eventhub.eventlog"
    label = "eventlog"
