"""Standard Webhooks v1: the id and the signature of a callback. Plain module."""

import base64
import hmac


def message_id(segment: str, sequence: int, endpoint_id: int) -> str:
    """Return the id of a delivery, the same for every attempt:
    `msg_<segment>_<sequence>_<endpoint>`.

    `segment` is a UUID in any form.
    """
    return f"msg_{segment.replace('-', '')}_{sequence}_{endpoint_id}"


def sign(secret: bytes, message: str, timestamp_s: int, body: bytes) -> str:
    """Return the header `webhook-signature`: HMAC-SHA256 of `id.timestamp.body` in base64, as
    `v1,…`.

    `secret` is the key itself, without `whsec_` and base64.
    """
    signed = b"%b.%d.%b" % (message.encode(), timestamp_s, body)
    return "v1," + base64.b64encode(hmac.digest(secret, signed, "sha256")).decode()
