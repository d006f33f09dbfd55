"""Claimed deliveries with everything that posting them needs. SQL module."""

from collections.abc import Mapping
from typing import NamedTuple

from delivery.callbacks.body import Body, BoundVariables, RequestContent
from delivery.callbacks.claimed_groups import AnyClaim, ClaimedGroup
from delivery.callbacks.claims import CallbackEndpoint, Claimed
from delivery.callbacks.load import LoadedContent
from delivery.callbacks.post import CallbackTarget, message_format
from delivery.callbacks.results import DeliveryPart
from eventhub.base import limits
from eventhub.eventlog.stored import Cursor


class PreparedDelivery(NamedTuple):
    """A claimed delivery, ready to be posted; its claim expires at `until_s`, on the
    loop's clock. The other fields are those of `LoadedContent`.
    """

    claimed: Claimed
    endpoint: CallbackEndpoint
    target: CallbackTarget
    segment: str
    variables: Mapping[int, str]
    body: Body | None
    is_visible: bool
    until_s: float
    is_deferred: bool = False  # its event was too much for one claim

    def content(self, body: Body) -> RequestContent:
        """Return the headers and the body of a request for this event alone."""
        return body.content(self.claimed.registrations, self._bound)

    @property
    def is_forced(self) -> bool:
        return self.claimed.forced

    @property
    def is_repeat(self) -> bool:
        return self.claimed.is_repeat

    @property
    def attempts(self) -> int:
        return self.claimed.attempts

    @property
    def timeout_s(self) -> float:
        """The longest time of an attempt, in seconds."""
        return self.endpoint.timeout_s or limits.CALLBACK_TIMEOUT_S_MAX

    @property
    def message(self) -> str:
        """The id of the delivery."""
        return _message_format(self.segment, self.claimed).format(self.claimed.sequence)

    @property
    def sequence(self) -> int:
        return self.claimed.sequence

    @property
    def part(self) -> DeliveryPart:
        """What its result has in common with those of others."""
        claimed = self.claimed
        return DeliveryPart(
            claimed.partition_id, claimed.endpoint_id, claimed.segment_id, claimed.token
        )

    def prepared(self) -> "PreparedDelivery":
        return self

    def element(self, body: Body, message: str) -> bytes:
        """Return the event with the id of its delivery as it is in a batch."""
        return body.element(message, self.claimed.registrations, self._bound)

    @property
    def _bound(self) -> BoundVariables | None:
        return _bound(self.segment, self.variables, self.claimed.sequence)


class PreparedGroup(NamedTuple):
    """What the deliveries of a claimed group have in common. `segment`: the UUID; `variables`: as
    in `LoadedContent`; `messages`: the ids of the deliveries, with `{}` in place of the sequence.
    """

    group: ClaimedGroup
    endpoint: CallbackEndpoint
    target: CallbackTarget
    segment: str
    variables: Mapping[int, str]
    messages: str
    part: DeliveryPart
    until_s: float


class GroupedDelivery(NamedTuple):
    """A delivery of a claimed group, ready to be posted in a batch."""

    common: PreparedGroup
    sequence: int
    body: Body | None
    is_visible: bool
    is_deferred: bool = False

    @property
    def endpoint(self) -> CallbackEndpoint:
        return self.common.endpoint

    @property
    def target(self) -> CallbackTarget:
        return self.common.target

    @property
    def is_forced(self) -> bool:
        return self.common.group.forced

    @property
    def is_repeat(self) -> bool:
        return self.common.group.is_repeat

    @property
    def attempts(self) -> int:
        return self.common.group.attempts

    @property
    def until_s(self) -> float:
        return self.common.until_s

    @property
    def timeout_s(self) -> float:
        return self.common.endpoint.timeout_s or limits.CALLBACK_TIMEOUT_S_MAX

    @property
    def message(self) -> str:
        return self.common.messages.format(self.sequence)

    @property
    def part(self) -> DeliveryPart:
        return self.common.part

    def prepared(self) -> PreparedDelivery:
        """Return the delivery on its own."""
        group, endpoint, target, segment, variables, _, _, until_s = self.common
        return PreparedDelivery(
            group.claimed(self.sequence),
            *(endpoint, target, segment, variables),
            *(self.body, self.is_visible, until_s, self.is_deferred),
        )

    def element(self, body: Body, message: str) -> bytes:
        """Return the event with the id of its delivery as it is in a batch."""
        common = self.common
        if not common.variables:
            return body.element(message, common.group.registrations)
        bound = _bound(common.segment, common.variables, self.sequence)
        return body.element(message, common.group.registrations, bound)


def prepared_group(
    group: ClaimedGroup,
    endpoint: CallbackEndpoint,
    target: CallbackTarget,
    loaded: LoadedContent,
    until_s: float,
) -> list[GroupedDelivery]:
    """Return the deliveries of a group, ready to be posted in batches."""
    part = DeliveryPart(group.partition_id, group.endpoint_id, group.segment_id, group.token)
    messages = _message_format(loaded.segment, group)
    common = PreparedGroup(
        group, endpoint, target, loaded.segment, loaded.variables, messages, part, until_s
    )
    contents = zip(group.sequences, loaded.bodies, loaded.visible, strict=True)
    return [
        GroupedDelivery(common, sequence, body, is_visible, number >= loaded.loaded)
        for number, (sequence, body, is_visible) in enumerate(contents)
    ]


def _message_format(segment: str, claimed: AnyClaim) -> str:
    found = message_format(segment, claimed.endpoint_id)
    if claimed.gap_first is not None:
        found += "_gap"  # the event of that sequence may have been posted before
    if claimed.message_number is not None:
        found += f"_{claimed.message_number}"
    return found


def _bound(segment: str, variables: Mapping[int, str], sequence: int) -> BoundVariables | None:
    return BoundVariables(variables, Cursor(segment, sequence)) if variables else None
