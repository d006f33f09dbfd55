"""Strict fields of serializers: no coercion, no unknown names, errors with a position.
Django module.
"""

import re
from datetime import UTC, datetime
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from eventhub.access.addresses import Networks, parse_networks
from eventhub.access.grants import ACTIONS, Grant, parse_grants
from eventhub.access.names import NAME
from eventhub.base import limits
from eventhub.base.errors import InvalidMask, MissingField, NotPowerOfTwo, WiderGrant
from eventhub.base.strict_json import NOT_NULL
from eventhub.event.json_codec import time_text

_DECIMAL = re.compile(r"[0-9]{1,20}")
_DEFINABLE_MASK_MAX = 1 << 62  # bit 63 is the channel `default`


class StrictField(serializers.Field):
    """A field that accepts JSON values of its own type only, not null."""

    kind: type = str
    default_error_messages = {"null": NOT_NULL}  # noqa: RUF012 (DRF's own form)

    def to_internal_value(self, data: Any) -> Any:
        if type(data) is not self.kind:
            self.fail("invalid")
        return super().to_internal_value(data)


class TextField(StrictField, serializers.CharField):
    """A JSON string, not trimmed."""

    default_error_messages = {  # noqa: RUF012 (DRF's own form)
        "invalid": "This must be a string.",
        "blank": "This must be a string of at least one character.",
        "max_length": "This may have at most {max_length:,} characters; shorten it.",
    }

    def __init__(self, **options: Any) -> None:
        super().__init__(trim_whitespace=False, **options)


class NameField(TextField):
    """The name of a zone, client, channel or stream."""

    default_error_messages = {"invalid_name": "Not a name."}  # noqa: RUF012 (DRF's own form)

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=limits.NAME_CHARS_MAX, **options)

    def to_internal_value(self, data: Any) -> str:
        text: str = super().to_internal_value(data)
        if not NAME.fullmatch(text):
            self.fail("invalid_name")
        return text


class GroupsField(StrictField, serializers.ListField):
    """Names of groups of clients; order and repetition do not count."""

    kind = list
    default_error_messages = {  # noqa: RUF012 (DRF's own form)
        "invalid": "This must be a list of names.",
        "max_length": "At most {max_length:,} names are allowed.",
    }

    def __init__(self, **options: Any) -> None:
        super().__init__(child=NameField(), max_length=limits.AUDIENCES_PER_CLIENT_MAX, **options)

    def to_internal_value(self, data: Any) -> tuple[str, ...]:
        return tuple(sorted(set(super().to_internal_value(data))))


class WholeField(StrictField, serializers.IntegerField):
    """A JSON integer: no string, float or boolean."""

    kind = int
    default_error_messages = {  # noqa: RUF012 (DRF's own form)
        "invalid": "This must be an integer.",
        "max_value": "This may be at most {max_value:,}.",
        "min_value": "This must be at least {min_value:,}.",
    }


class FlagField(StrictField, serializers.BooleanField):
    """A JSON boolean."""

    kind = bool
    default_error_messages = {"invalid": "This must be true or false."}  # noqa: RUF012


class OneOfField(StrictField, serializers.ChoiceField):
    """One of a few strings."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        words = ", ".join(map(str, self.choices))
        self.error_messages |= dict.fromkeys(
            ("invalid", "invalid_choice"), f"This must be one of {words}."
        )


class MomentField(serializers.DateTimeField):
    """An RFC 3339 time with an offset; represents a datetime, microseconds since 1970, or a text in
    that form.
    """

    default_error_messages = {  # noqa: RUF012 (DRF's own form)
        "invalid": "This must be a time such as 2026-11-21T08:00:00Z.",
        "no_offset": "This must be a time with an offset, such as 2026-11-21T08:00:00Z.",
    }

    def to_internal_value(self, value: Any) -> Any:
        try:
            found = datetime.fromisoformat(value)
        except (TypeError, ValueError):
            self.fail("invalid")
        if found.tzinfo is None:
            self.fail("no_offset")
        return self.enforce_timezone(found)

    def to_representation(self, value: Any) -> str:
        if isinstance(value, int):
            return time_text(value)
        if isinstance(value, str):
            return value
        text = value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds")
        return f"{text}Z"


class GrantSerializer(serializers.Serializer):
    """One grant, as represented and documented."""

    action = serializers.ChoiceField(choices=ACTIONS)
    streams = serializers.CharField(help_text="A stream's name; `*` stands for any characters.")


@extend_schema_field(GrantSerializer(many=True))
class GrantsField(serializers.Field):
    """A list of grants."""

    raises = (MissingField, WiderGrant)

    def to_internal_value(self, data: Any) -> tuple[Grant, ...]:
        return parse_grants(data, field=self.field_name or "grants")

    def to_representation(self, value: Any) -> Any:
        return value


@extend_schema_field({"type": "array", "items": {"type": "string"}})  # DRF adds null
class NetworksField(serializers.Field):
    """A list of IP addresses and networks in CIDR notation; null allows every address."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_null=True, **options)

    def to_internal_value(self, data: Any) -> Networks | None:
        return parse_networks(data, field=self.field_name or "allowed_addresses")

    def to_representation(self, value: Any) -> Any:
        return value


@extend_schema_field({"oneOf": [{"type": "integer"}, {"type": "string", "pattern": "^[0-9]+$"}]})
class ChannelMaskField(serializers.Field):
    """A channel's tag mask, a power of two, as an integer or a decimal string; its value is the bit
    (EMC-19).
    """

    raises = (InvalidMask, NotPowerOfTwo)

    def to_internal_value(self, data: Any) -> int:
        mask = data
        if isinstance(data, str) and _DECIMAL.fullmatch(data):
            mask = int(data)
        if not isinstance(mask, int) or isinstance(mask, bool):
            raise InvalidMask(field=self.field_name)
        if not 0 < mask <= _DEFINABLE_MASK_MAX or mask & (mask - 1):
            raise NotPowerOfTwo(field=self.field_name)
        return mask.bit_length() - 1


class ObjectField(serializers.DictField):
    """Any JSON object."""
