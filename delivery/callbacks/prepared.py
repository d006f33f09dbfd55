"""A claimed delivery with everything that posting it needs. Plain module."""

from typing import NamedTuple

from delivery.callbacks.body import Body, BoundVariables
from delivery.callbacks.claims import Claimed
from delivery.callbacks.client import HttpClient
from delivery.callbacks.load import LoadedContent
from delivery.callbacks.post import CallbackTarget, PostResult, message_id, not_sent, post
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
        body = self.content.body
        if body is None:
            return not_sent(self.target, "unreadable", "the event cannot be read at present")
        content = body.content(self.claimed.registrations, self._bound)
        return await post(client, self.target, self.message, content)

    @property
    def message(self) -> str:
        """The id of the delivery."""
        claimed = self.claimed
        message = message_id(self.content.segment, claimed.sequence, claimed.endpoint_id)
        # the event of a gap notice's sequence may have been posted before
        return message if claimed.gap_first is None else f"{message}_gap"

    def is_unreadable(self) -> bool:
        return self.content.body is None

    def element(self, body: Body) -> bytes:
        """Return the event as it is in a batch."""
        return body.element(self.message, self.claimed.registrations, self._bound)

    @property
    def _bound(self) -> BoundVariables | None:
        _, segment, variables = self.content
        cursor = Cursor(segment, self.claimed.sequence)
        return BoundVariables(variables, cursor) if variables else None
