"""Definitions of event types as a Django app. Django module."""

from django.apps import AppConfig


class TypesConfig(AppConfig):
    name = "eventhub.types"
    label = "types"
    verbose_name = "Event types"
