"""The kinds of sinks, one module each: one more is one file and one line here. SQL module."""

from typing import Any

import msgspec

from eventhub.base.errors import BadRequest
from eventhub.event.inbound import refuse_json
from registrations.sinks import kafka, postgresql, s3
from registrations.sinks.kind import SinkKind

_MODULES = (postgresql, s3, kafka)
SINKS: dict[str, SinkKind] = {one.KIND.name: one.KIND for one in _MODULES}
HTTPS = "https"  # the kind of endpoints to which events are posted
KINDS = (HTTPS, *SINKS)
SCHEMES = {scheme for sink in SINKS.values() for scheme in sink.schemes} - {"http", "https"}


def parse_settings(sink: SinkKind, given: Any) -> Any:
    """Return the settings of a kind. Raises subclasses of BadRequest at `settings`."""
    try:
        return msgspec.convert(given, sink.settings)
    except msgspec.ValidationError as error:
        try:
            refuse_json(error)
        except BadRequest as refusal:
            field = refusal.field
            refusal.field = "settings" if field is None else f"settings.{field}"
            raise


def stored_settings(sink: SinkKind, text: str) -> Any:
    """Return the settings of a kind from their stored JSON."""
    return msgspec.json.decode(text, type=sink.settings)
