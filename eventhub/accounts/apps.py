"""The management API of `eventhub.access`'s tables as a Django app. Django module."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "eventhub.accounts"
    label = "accounts"
