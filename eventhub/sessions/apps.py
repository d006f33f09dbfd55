"""Sessions of clients as a Django app; Django's own `sessions` are logins. Django module."""

from django.apps import AppConfig


class SessionsConfig(AppConfig):
    name = "eventhub.sessions"
    label = "hub_sessions"
    verbose_name = "Sessions of clients"
