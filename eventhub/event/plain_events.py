"""The stored bytes of plain events, from the JSON that emitters send, by the compiled encoder.
Plain module.
"""

from eventhub.base import limits
from eventhub.event.compiled import encoder
from eventhub.event.envelope import DEFAULT_MASK

_LIMITS = (
    limits.BATCH_EVENTS_MAX,
    limits.TEXT_CHARS_MAX,
    limits.ATTRIBUTES_BYTES_MAX,
    limits.ATTRIBUTES_COUNT_MAX,
    limits.ATTRIBUTES_VALUES_MAX,
    limits.EVENT_BYTES_MAX,
)


def plain_payloads(body: bytes, client: str) -> list[bytes] | None:
    """Return the stored bytes of one event or an array of them, in the channel `default`, as
    `inbound.stored_bytes` returns them. They have neither ids nor keys. None if the encoder was not
    built, does not know one of them, or finds an error: then `inbound.parse` reads the body.
    """
    if encoder is None:
        return None
    return encoder.plain_events(body, client, DEFAULT_MASK, _LIMITS)
