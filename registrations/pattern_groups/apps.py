"""Pattern groups as a Django app. Django module."""

from django.apps import AppConfig


class PatternGroupsConfig(AppConfig):
    name = "registrations.pattern_groups"
    label = "hub_patterns"
    verbose_name = "Pattern groups"
