"""Writes the JSON of an answer."""

from collections.abc import Mapping
from typing import Any

import orjson
from rest_framework.renderers import JSONRenderer


class FastJSONRenderer(JSONRenderer):
    """DRF's, by a faster encoder for all that it takes: not integers beyond 64 bits."""

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        try:
            return b"" if data is None else orjson.dumps(data)
        except TypeError:
            found: bytes = super().render(data, accepted_media_type, renderer_context)
            return found
