"""Delivery as a Django app; it has no models, its tables are plain SQL."""

from django.apps import AppConfig


class DeliveryConfig(AppConfig):
    name = "delivery"
    label = "delivery"
