"""The JSON renderer of responses. Django module."""

from typing import Any

import orjson
from rest_framework.renderers import JSONRenderer


class FastJSONRenderer(JSONRenderer):
    """DRF's renderer with orjson, except for integers beyond 64 bits, which orjson refuses."""

    def render(self, data: Any, *args: Any, **options: Any) -> Any:
        try:
            return b"" if data is None else orjson.dumps(data)
        except TypeError:
            return super().render(data, *args, **options)
