"""A claimed delivery with all that posting it takes. Plain module."""

from typing import NamedTuple

from delivery.callbacks.body import Body
from delivery.callbacks.claims import Claimed
from delivery.callbacks.client import Client
from delivery.callbacks.post import Ended, Target, not_sent, post
from delivery.callbacks.signature import message_id


class Work(NamedTuple):
    """`until_s` is when its claim ends, on the loop's clock."""

    claimed: Claimed
    target: Target
    body: Body | None  # None: the event cannot be read just now
    segment: str
    until_s: float

    async def posted(self, client: Client) -> Ended:
        """Post it once."""
        if self.body is None:
            return not_sent(self.target, "unreadable", "the event cannot be read just now")
        claimed = self.claimed
        message = message_id(self.segment, claimed.sequence, claimed.endpoint_id)
        if claimed.gap_first is not None:
            message += "_gap"  # the event of that sequence may have been posted before its drop
        content = self.body.content(claimed.registrations)
        return await post(client, self.target, message, content)
