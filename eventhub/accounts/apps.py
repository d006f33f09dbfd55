"""The management API of zones, clients, channels and credentials as a Django app; its tables are
those of `eventhub.access`. Django module.
"""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "eventhub.accounts"
    label = "accounts"
