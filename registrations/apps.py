"""The Django app of registrations. Django module."""

from django.apps import AppConfig
from django.conf import settings
from django.utils.module_loading import autodiscover_modules

from eventhub.base.env import refuse
from registrations.endpoints.addresses import parse_allowed


class RegistrationsConfig(AppConfig):
    name = "registrations"
    label = "registrations"

    def ready(self) -> None:
        """Check EVENTHUB_CALLBACK_ALLOW at start, not at the first callback: an invalid entry ends
        the process.
        """
        try:
            parse_allowed(settings.ENV.callback_allow)
        except ValueError as error:
            refuse(str(error))
        autodiscover_modules("signals")
