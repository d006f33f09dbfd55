"""The request for an access token of an endpoint. Plain module."""

from typing import NamedTuple

from delivery.callbacks.guard import Origin


class TokenRequest(NamedTuple):
    """How to request a token (OAuth 2.0, client credentials); `secret_id` is the stored
    authentication that it is made of. `request` is all of the HTTP request.
    """

    endpoint_id: int
    secret_id: int
    url: str
    origin: Origin
    request: bytes
    secrets: tuple[str, ...]  # texts of it that must not be recorded
