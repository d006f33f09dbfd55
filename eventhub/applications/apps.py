"""States of applications as a Django app. Django module."""

from django.apps import AppConfig


class ApplicationsConfig(AppConfig):
    name = "eventhub.applications"
    label = "applications"
    verbose_name = "States of applications"
