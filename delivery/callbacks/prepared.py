"""A claimed delivery with everything that posting it needs. SQL module."""

from typing import NamedTuple

from delivery.callbacks.body import Body, BoundVariables, RequestContent
from delivery.callbacks.claims import CallbackEndpoint, Claimed
from delivery.callbacks.client import HttpClient
from delivery.callbacks.load import LoadedContent
from delivery.callbacks.post import CallbackTarget, PostResult, message_id, not_sent, post
from delivery.callbacks.post_with_token import post_with_token
from delivery.callbacks.tokens import TokenSource
from eventhub.base import limits
from eventhub.eventlog.stored import Cursor


class PreparedDelivery(NamedTuple):
    """A claimed delivery, ready to be posted; its claim expires at `until_s`, on the
    loop's clock.
    """

    claimed: Claimed
    endpoint: CallbackEndpoint
    target: CallbackTarget
    content: LoadedContent
    until_s: float

    async def post_once(self, client: HttpClient, tokens: TokenSource) -> PostResult:
        """Make one attempt and return how it ended."""
        body = self.content.body
        if body is None:
            return not_sent(self.target, "unreadable", "the event cannot be read at present")
        content = body.content(self.claimed.registrations, self._bound)
        return await post_to(client, tokens, self.target, self.message, content)

    @property
    def timeout_s(self) -> float:
        """The longest time of an attempt, in seconds."""
        return self.endpoint.timeout_s or limits.CALLBACK_TIMEOUT_S_MAX

    @property
    def message(self) -> str:
        """The id of the delivery."""
        claimed = self.claimed
        message = message_id(self.content.segment, claimed.sequence, claimed.endpoint_id)
        if claimed.gap_first is not None:
            message += "_gap"  # the event of that sequence may have been posted before
        if claimed.message_number is not None:
            message += f"_{claimed.message_number}"
        return message

    def is_unreadable(self) -> bool:
        return self.content.body is None

    def element(self, body: Body, message: str) -> bytes:
        """Return the event with the id of its delivery as it is in a batch."""
        return body.element(message, self.claimed.registrations, self._bound)

    @property
    def _bound(self) -> BoundVariables | None:
        _, segment, variables, _ = self.content
        cursor = Cursor(segment, self.claimed.sequence)
        return BoundVariables(variables, cursor) if variables else None


async def post_to(
    client: HttpClient,
    tokens: TokenSource,
    target: CallbackTarget,
    message: str,
    content: RequestContent,
) -> PostResult:
    """Send a request to an endpoint, with an access token if it needs one."""
    if target.oauth2 is not None:
        return await post_with_token(client, tokens, target, message, content)
    return await post(client, target, message, content)
