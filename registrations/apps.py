"""The Django app of registrations. Django module."""

from django.apps import AppConfig
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import autodiscover_modules

from registrations.endpoints.addresses import parse_allowed


class RegistrationsConfig(AppConfig):
    name = "registrations"
    label = "registrations"

    def ready(self) -> None:
        """Check EVENTHUB_CALLBACK_ALLOW at start, not at the first callback."""
        try:
            parse_allowed(settings.ENV.callback_allow)
        except ValueError as error:
            raise ImproperlyConfigured(str(error)) from None
        autodiscover_modules("signals")
