"""Sources as a Django app. Django module."""

from django.apps import AppConfig


class SourcesConfig(AppConfig):
    name = "registrations.sources"
    label = "sources"
    verbose_name = "Sources: webhooks of third parties"
