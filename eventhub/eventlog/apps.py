"""The log as a Django app. Its tables are written by SQL. Django module."""

from django.apps import AppConfig


class EventLogConfig(AppConfig):
    name = "eventhub.eventlog"
    label = "eventlog"
    verbose_name = "Log"
