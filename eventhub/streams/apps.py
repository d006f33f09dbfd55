"""The streams' management API as a Django app; it has no models, the log's tables are plain SQL."""

from django.apps import AppConfig


class StreamsConfig(AppConfig):
    name = "eventhub.streams"
    label = "streams"
