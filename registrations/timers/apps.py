"""Timers as a Django app. Django module."""

from django.apps import AppConfig


class TimersConfig(AppConfig):
    name = "registrations.timers"
    label = "timers"
    verbose_name = "Timers and delayed events"
