"""Reads a management request's body: strict JSON, one object, nothing rounded or guessed."""

from collections.abc import Mapping
from typing import IO, Any

from rest_framework.parsers import BaseParser

from eventhub import limits
from eventhub.access.strict_json import parse_json, parse_object
from eventhub.access.strict_json import shown as shown
from eventhub.errors import BodyTooLarge


class StrictJSONParser(BaseParser):
    """DRF's parser for `application/json`."""

    media_type = "application/json"
    bytes_max = limits.MANAGE_BODY_BYTES_MAX

    def parse(
        self,
        stream: IO[bytes],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        body = stream.read(self.bytes_max + 1)
        if len(body) > self.bytes_max:
            raise BodyTooLarge(bytes_max=self.bytes_max)
        return self.parsed(body)

    def parsed(self, body: bytes) -> Any:
        return parse_object(body)


class LoginJSONParser(StrictJSONParser):
    """The same for whoever is not known yet."""

    bytes_max = limits.LOGIN_BODY_BYTES_MAX


class StrictJSONListParser(StrictJSONParser):
    """The same where an array of objects may stand for several requests."""

    def parsed(self, body: bytes) -> Any:
        return parse_json(body)
