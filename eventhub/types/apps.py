"""Definitions of event types as a Django app; its table is written by SQL. Django module."""

from django.apps import AppConfig


class TypesConfig(AppConfig):
    name = "eventhub.types"
    label = "types"
    verbose_name = "Event types"
