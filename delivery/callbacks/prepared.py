"""A claimed delivery with everything needed to post it. Plain module."""

from typing import NamedTuple

from delivery.callbacks.body import Body
from delivery.callbacks.claims import Claimed
from delivery.callbacks.client import HttpClient
from delivery.callbacks.post import CallbackTarget, PostResult, not_sent, post
from delivery.callbacks.signature import message_id


class PreparedDelivery(NamedTuple):
    """A claimed delivery, ready to be posted until `until_s`, on the loop's clock."""

    claimed: Claimed
    target: CallbackTarget
    body: Body | None  # None: the event cannot be read at present
    segment: str
    until_s: float

    async def post_once(self, client: HttpClient) -> PostResult:
        """Make one attempt and return how it ended."""
        if self.body is None:
            return not_sent(self.target, "unreadable", "the event cannot be read at present")
        claimed = self.claimed
        message = message_id(self.segment, claimed.sequence, claimed.endpoint_id)
        if claimed.gap_first is not None:
            message += (
                "_gap"  # the event of that sequence may have been posted before it was dropped
            )
        content = self.body.content(claimed.registrations)
        return await post(client, self.target, message, content)
