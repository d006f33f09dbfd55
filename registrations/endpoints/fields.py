"""Fields of the serializers of endpoints. Django module."""

from typing import Any

from django.utils import timezone
from rest_framework import serializers

from eventhub.api.fields import MomentField, StrictField, TextField, WholeField
from eventhub.base import limits
from eventhub.base.errors import FieldTooLong
from registrations.endpoints import secrets, services
from registrations.endpoints.callback_url import valid_url
from registrations.errors import RefusedAddress
from registrations.sinks.registry import SCHEMES


class UrlField(TextField):
    """A URL that the hub may call."""

    raises = (RefusedAddress,)

    def to_internal_value(self, data: Any) -> str:
        addresses = services.callback_addresses(self.context["view"].actor.zone)
        path = (self.parent.field_name, self.field_name)  # of the parent: None at the top
        return valid_url(data, addresses, field=".".join(name for name in path if name) or "url")


class ReceiverUrlField(UrlField):
    """The URL of an endpoint of any kind. One of another scheme is checked with its kind."""

    def to_internal_value(self, data: Any) -> str:
        if isinstance(data, str) and data.partition("://")[0] in SCHEMES:
            if len(data) > limits.URL_CHARS_MAX:
                raise FieldTooLong(field="url", chars_max=limits.URL_CHARS_MAX)
            return data
        return super().to_internal_value(data)


class SecretField(TextField):
    """The text of a secret; its value is in bytes."""

    def to_internal_value(self, data: Any) -> Any:
        try:
            return secrets.parse_secret(super().to_internal_value(data))
        except ValueError as error:
            raise serializers.ValidationError(str(error)) from None


class ExpiryField(MomentField):
    """A time in the future."""

    def to_internal_value(self, value: Any) -> Any:
        found = super().to_internal_value(value)
        if found <= timezone.now():
            raise serializers.ValidationError("The expiry must be in the future.")
        return found


class RetryScheduleField(StrictField, serializers.ListField):
    """The pauses before retries, in seconds; null: the default."""

    kind = list
    default_error_messages = {  # noqa: RUF012 (DRF's own form)
        "invalid": "This must be a list of pauses in seconds.",
        "max_length": "At most {max_length:,} pauses are allowed.",
        "total": "These pauses are {total:,} s together; at most {max:,} s are allowed.",
    }

    def __init__(self, **options: Any) -> None:
        pause = WholeField(min_value=1, max_value=limits.CALLBACK_RETRY_S_MAX)
        bounds = {"child": pause, "max_length": limits.CALLBACK_RETRIES_MAX}
        super().__init__(**bounds, allow_null=True, required=False, **options)

    def to_internal_value(self, data: Any) -> list[int]:
        pauses: list[int] = super().to_internal_value(data)
        total = sum(pauses)
        if total > limits.CALLBACK_RETRY_TOTAL_S_MAX:
            self.fail("total", total=total, max=limits.CALLBACK_RETRY_TOTAL_S_MAX)
        return pauses


class RateField(StrictField, serializers.FloatField):
    """Requests per second, a JSON number; null: unlimited."""

    default_error_messages = {  # noqa: RUF012 (DRF's own form)
        "invalid": "This must be a number.",
        "max_value": "This may be at most {max_value:,}.",
        "min_value": "This must be at least {min_value:,}.",
    }

    def __init__(self, **options: Any) -> None:
        bounds = {
            "min_value": limits.CALLBACK_RATE_MIN,
            "max_value": limits.CALLBACK_RATE_MAX,
        }
        super().__init__(**bounds, allow_null=True, required=False, **options)

    def to_internal_value(self, data: Any) -> float:
        if type(data) not in (int, float):
            self.fail("invalid")
        return float(data)


class DisableAfterField(WholeField):
    """A time in seconds, 0 for never, null for the default."""

    def __init__(self, **options: Any) -> None:
        maximum = limits.CALLBACK_DISABLE_AFTER_S_MAX
        super().__init__(min_value=0, max_value=maximum, allow_null=True, required=False, **options)

    def to_internal_value(self, data: Any) -> int:
        seconds: int = super().to_internal_value(data)
        if 0 < seconds < limits.CALLBACK_DISABLE_AFTER_S_MIN:
            self.fail("min_value", min_value=limits.CALLBACK_DISABLE_AFTER_S_MIN)
        return seconds
