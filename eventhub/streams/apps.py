"""The streams' management API as a Django app; its tables are the log's. Django module."""

from django.apps import AppConfig


class StreamsConfig(AppConfig):
    name = "eventhub.streams"
    label = "streams"
