"""The strict JSON of management requests, and the fast JSON of responses. Django module."""

from typing import IO, Any

import orjson
from rest_framework.parsers import BaseParser
from rest_framework.renderers import JSONRenderer

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


class FastJSONRenderer(JSONRenderer):
    """DRF's renderer with orjson, except for integers beyond 64 bits, which orjson refuses."""

    def render(self, data: Any, *args: Any, **options: Any) -> Any:
        try:
            return b"" if data is None else orjson.dumps(data)
        except TypeError:
            return super().render(data, *args, **options)
