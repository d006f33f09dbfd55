"""Delivery as a Django app; its tables are written by SQL. Django module."""

from django.apps import AppConfig


class DeliveryConfig(AppConfig):
    name = "delivery"
    label = "delivery"
