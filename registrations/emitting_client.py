"""The client as which something of the hub emits for it: a source, a connector. Plain module."""

from typing import NamedTuple

from eventhub.access.grants import Grant
from eventhub.access.principal import Principal
from eventhub.access.quotas import EmitRates


class EmittingClient(NamedTuple):
    """A client, the stream that it emits to, and its quotas: events a second, of it and of its zone
    (None: no quota), and of stored bytes, if the zone has reached it.
    """

    stream: str
    client_id: int
    client: str
    zone_id: int
    zone: str
    client_rate: int | None
    zone_rate: int | None
    storage_quota: int | None

    def principal(self, public_id: str) -> Principal:
        """Return the principal as which it emits, on its stream only. `public_id`: of what emits,
        in the place of a key's.
        """
        rates = EmitRates(self.client_rate, self.zone_rate)
        return Principal(
            0,
            public_id,
            self.client_id,
            self.client,
            self.zone_id,
            self.zone,
            (Grant("emit", self.stream),),
            None,
            rates=None if rates == (None, None) else rates,
            storage_quota=self.storage_quota,
        )
