"""A claimed delivery with everything needed to post it. Plain module."""

from typing import NamedTuple

from delivery.callbacks.body import BoundVariables
from delivery.callbacks.claims import Claimed
from delivery.callbacks.client import HttpClient
from delivery.callbacks.load import LoadedContent
from delivery.callbacks.post import CallbackTarget, PostResult, not_sent, post
from delivery.callbacks.signature import message_id
from eventhub.eventlog.stored import Cursor


class PreparedDelivery(NamedTuple):
    """A claimed delivery, ready to be posted; its claim expires at `until_s`, on the
    loop's clock.
    """

    claimed: Claimed
    target: CallbackTarget
    content: LoadedContent
    until_s: float

    async def post_once(self, client: HttpClient) -> PostResult:
        """Make one attempt and return how it ended."""
        body, segment, variables = self.content
        if body is None:
            return not_sent(self.target, "unreadable", "the event cannot be read at present")
        claimed = self.claimed
        message = message_id(segment, claimed.sequence, claimed.endpoint_id)
        if claimed.gap_first is not None:
            message += (
                "_gap"  # the event of that sequence may have been posted before it was dropped
            )
        bound = BoundVariables(variables, Cursor(segment, claimed.sequence)) if variables else None
        content = body.content(claimed.registrations, bound)
        return await post(client, self.target, message, content)
