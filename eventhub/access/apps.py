"""Zones, clients, keys and channel names as a Django app. Django module."""

from django.apps import AppConfig


class AccessConfig(AppConfig):
    name = "eventhub.access"
    label = "access"
    verbose_name = "Access"
