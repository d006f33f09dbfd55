"""Serializers of operators and their passwords. Django module."""

import re
from typing import Any

from django.contrib.auth.models import User
from rest_framework import serializers

from eventhub.access.roles import ROLES
from eventhub.api.fields import FlagField, MomentField, OneOfField, TextField
from eventhub.api.serializers import ChangedSerializer, Serializer
from eventhub.base import limits

OPERATOR_NAME = re.compile(rf"[\w.@+-]{{1,{limits.OPERATOR_NAME_CHARS_MAX}}}")
ROLE = "viewer reads everything; operator also changes all but operators and API keys; admin all."


class OperatorNameField(TextField):
    """The name of an operator, also an e-mail address."""

    default_error_messages = {  # noqa: RUF012 (DRF's own form)
        "invalid_operator": "A name is letters, digits and `.`, `@`, `+`, `-`, `_`."
    }

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=limits.OPERATOR_NAME_CHARS_MAX, **options)

    def to_internal_value(self, data: Any) -> str:
        text: str = super().to_internal_value(data)
        if len(text) <= limits.OPERATOR_NAME_CHARS_MAX and not OPERATOR_NAME.fullmatch(text):
            self.fail("invalid_operator")
        return text


def _password(**options: Any) -> TextField:
    return TextField(max_length=limits.TEXT_CHARS_MAX, **options)


class OperatorSerializer(ChangedSerializer, Serializer):
    name = serializers.CharField(source="username")
    role = serializers.ChoiceField(choices=ROLES, help_text=ROLE)
    active = serializers.BooleanField(source="is_active", help_text="false: it cannot log in.")
    has_password = serializers.SerializerMethodField(
        help_text="false: it has to set one with a set-up token."
    )
    created_at = MomentField(source="date_joined")
    last_login_at = MomentField(source="last_login", allow_null=True)

    def get_has_password(self, user: User) -> bool:
        return bool(user.has_usable_password())


class SetupTokenSerializer(Serializer):
    has_secret = True
    setup_token = serializers.CharField(
        help_text="Sets a password once, with POST /v1/session/setup. It is shown only once."
    )
    setup_expires_at = MomentField()


class IssuedOperatorSerializer(OperatorSerializer):
    has_secret = True
    setup_token = serializers.CharField(
        allow_null=True,
        help_text="Sets the password once, with POST /v1/session/setup; null: it has one."
        " It is shown only once.",
    )
    setup_expires_at = MomentField(allow_null=True)


class NewOperatorSerializer(Serializer):
    name = OperatorNameField()
    role = OneOfField(choices=ROLES, help_text=ROLE)
    password = _password(required=False, help_text="Without it, the answer has a set-up token.")


class OperatorChangeSerializer(Serializer):
    role = OneOfField(choices=ROLES, required=False, help_text=ROLE)
    active = FlagField(required=False, help_text="false: it cannot log in.")
    password = _password(required=False, help_text="A new password; it ends all its sessions.")


class PasswordChangeSerializer(Serializer):
    password = _password(help_text="The present one.")
    new_password = _password()


class SetupSerializer(Serializer):
    username = TextField(max_length=limits.OPERATOR_NAME_CHARS_MAX)
    setup_token = TextField(max_length=limits.NAME_CHARS_MAX)
    password = _password(help_text="The new one.")
