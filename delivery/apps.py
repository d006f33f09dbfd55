"""Delivery as a Django app; its tables are written by SQL."""

from django.apps import AppConfig


class DeliveryConfig(AppConfig):
    name = "delivery"
    label = "delivery"
