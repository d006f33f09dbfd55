"""What posting a delivery takes beside the delivery: the event's body, the segment's UUID, and the
endpoint's key; each is made or looked up once and kept. Sql module.
"""

from collections.abc import Sequence

from delivery.callbacks import claims
from delivery.callbacks.body import EventBody, EventCache, Place, event_body
from delivery.callbacks.claims import Claimed, Endpoint
from delivery.callbacks.post import Target, target_of
from eventhub import limits
from eventhub.eventlog.database import Connection
from registrations.endpoints.secrets import Unsealable, unseal

_UNKNOWN = Place("", "")


class Loader:
    """The caches of one drain."""

    def __init__(self, secret_key: str) -> None:
        self._secret_key = secret_key
        self._events = EventCache(limits.CALLBACK_EVENT_BYTES_CACHED_MAX)
        self._places: dict[int, Place] = {}
        self._targets: dict[int, tuple[Endpoint, Target]] = {}

    def target(self, endpoint: Endpoint) -> Target:
        """How the endpoint is called."""
        kept = self._targets.get(endpoint.id)
        if kept is not None and kept[0] == endpoint:
            return kept[1]
        if len(self._targets) >= limits.CALLBACK_NAMES_CACHED_MAX:
            self._targets.clear()
        target = _target(self._secret_key, endpoint)
        self._targets[endpoint.id] = (endpoint, target)
        return target

    async def load(
        self, connection: Connection, claimed: Sequence[Claimed]
    ) -> list[tuple[EventBody | None, str]]:
        """For each delivery the event's body, None if it is nowhere, and the segment's UUID."""
        await self._load_places(connection, claimed)
        missing = [each for each in claimed
                   if each.payload is None and self._events.get(_key(each)) is None]  # fmt: skip
        events = await claims.load_events(connection, missing) if missing else {}
        made: dict[tuple[int, int], EventBody] = {}
        for key, (appended_at_us, payload) in events.items():
            body = event_body(self._places.get(key[0], _UNKNOWN), key[1], appended_at_us, payload)
            made[key] = body
            self._events.put(key, body)
        return [(self._body(each, made), self._place(each).segment) for each in claimed]

    def _body(self, claimed: Claimed, made: dict[tuple[int, int], EventBody]) -> EventBody | None:
        if claimed.payload is not None:
            place = self._place(claimed)
            return event_body(place, claimed.sequence, claimed.created_at_us, claimed.payload)
        return made.get(_key(claimed)) or self._events.get(_key(claimed))

    def _place(self, claimed: Claimed) -> Place:
        return self._places.get(claimed.segment_id, _UNKNOWN)

    async def _load_places(self, connection: Connection, claimed: Sequence[Claimed]) -> None:
        missing = {each.segment_id for each in claimed} - self._places.keys()
        if not missing:
            return
        if len(self._places) + len(missing) > limits.CALLBACK_NAMES_CACHED_MAX:
            self._places.clear()
            missing = {each.segment_id for each in claimed}
        self._places.update(await claims.load_places(connection, missing))


def _target(secret_key: str, endpoint: Endpoint) -> Target:
    """One endpoint that cannot be called must not keep the others from being called."""
    try:
        secret = unseal(secret_key, endpoint.secret)
        return target_of(endpoint.url, secret)
    except (Unsealable, ValueError) as error:
        return Target(endpoint.url, None, "", "", b"", str(error))


def _key(claimed: Claimed) -> tuple[int, int]:
    return claimed.segment_id, claimed.sequence
