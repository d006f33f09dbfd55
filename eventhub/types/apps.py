"""Definitions of event types as a Django app; it has no models, its table is plain SQL."""

from django.apps import AppConfig


class TypesConfig(AppConfig):
    name = "eventhub.types"
    label = "types"
