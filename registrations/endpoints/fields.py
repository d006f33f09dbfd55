"""Fields of the serializers of endpoints. Django module."""

from typing import Any

from rest_framework import serializers

from eventhub.api.fields import TextField
from registrations.endpoints import secrets, services
from registrations.endpoints.callback_url import valid_url
from registrations.errors import RefusedAddress


class UrlField(TextField):
    """A URL that the hub may call."""

    raises = (RefusedAddress,)

    def to_internal_value(self, data: Any) -> str:
        addresses = services.callback_addresses(self.context["view"].actor.zone)
        path = (self.parent.field_name, self.field_name)  # of the parent: None at the top
        return valid_url(data, addresses, field=".".join(name for name in path if name) or "url")


class SecretField(TextField):
    """The text of a secret; its value is in bytes."""

    def to_internal_value(self, data: Any) -> Any:
        try:
            return secrets.parse_secret(super().to_internal_value(data))
        except ValueError as error:
            raise serializers.ValidationError(str(error)) from None
