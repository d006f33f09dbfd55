"""An attempt at an endpoint that authenticates with OAuth 2.0. SQL module."""

import time

from delivery.callbacks.body import RequestContent
from delivery.callbacks.client import HttpClient
from delivery.callbacks.oauth2 import TokenUnavailable
from delivery.callbacks.post import CallbackTarget, PostResult, not_sent, post
from delivery.callbacks.tokens import AccessToken, TokenSource
from eventhub.base import limits


async def post_with_token(
    client: HttpClient,
    tokens: TokenSource,
    target: CallbackTarget,
    message: str,
    content: RequestContent,
) -> PostResult:
    """Send a callback with an access token and return its outcome. After a 401 it is sent once
    more, with a new token, within the same attempt; without a token it is not sent.
    """
    assert target.oauth2 is not None  # noqa: S101 - the caller's condition
    started_s = time.monotonic()
    try:
        token = await tokens.token(target.oauth2)
    except TokenUnavailable as error:
        return not_sent(target, "token_unavailable", str(error))
    result = await post(client, with_token(target, token), message, content)
    elapsed_s = time.monotonic() - started_s
    if result.outcome.status != 401 or elapsed_s > limits.OAUTH2_TOKEN_S_MAX:
        return result
    try:
        renewed = await tokens.renewed(target.oauth2, token)
    except TokenUnavailable:
        return result
    if renewed is None:
        return result
    return await post(client, with_token(target, renewed), message, content)


def with_token(target: CallbackTarget, token: AccessToken) -> CallbackTarget:
    """Return the target with the header that bears the token."""
    headers = f"{target.headers}authorization: Bearer {token.text}\r\n"
    return target._replace(headers=headers, secrets=(*target.secrets, token.text))
