"""The Django app of deliveries; SQL writes its tables. Django module."""

from django.apps import AppConfig


class DeliveryConfig(AppConfig):
    name = "delivery"
    label = "delivery"
