"""Parsers of management requests: strict JSON, one object, nothing rounded or guessed.
Django module.
"""

from typing import IO, Any

from rest_framework.parsers import BaseParser

from eventhub.base import limits
from eventhub.base.errors import BodyTooLarge
from eventhub.base.strict_json import parse_json, parse_object


class StrictJSONParser(BaseParser):
    """The strict parser for `application/json`."""

    media_type = "application/json"
    bytes_max = limits.MANAGE_BODY_BYTES_MAX
    read = staticmethod(parse_object)

    def parse(self, stream: IO[bytes], media_type: Any = None, parser_context: Any = None) -> Any:
        body = stream.read(self.bytes_max + 1)
        if len(body) > self.bytes_max:
            raise BodyTooLarge(bytes_max=self.bytes_max)
        return self.read(body)


class LoginJSONParser(StrictJSONParser):
    """The strict parser for callers who are not authenticated yet, with a lower limit."""

    bytes_max = limits.LOGIN_BODY_BYTES_MAX


class StrictJSONListParser(StrictJSONParser):
    """The strict parser where an array of objects may stand for several requests."""

    read = staticmethod(parse_json)
