"""A reader: the receiving end of one connection, and the credential it is authorised by. All
transports share it; the reader monitor checks it. Plain module.
"""

import asyncio
from abc import ABC, abstractmethod

from delivery.listening.frames import Frame
from eventhub.access.authorizer import Authorizer
from eventhub.access.principal import Principal
from eventhub.base.clock import Clock
from eventhub.base.errors import DatabaseUnavailable


class Reader(ABC):
    """A credential, its principal, and the state of the connection.

    `waker` is set by everything that may have work for this reader: rings, the authorizer, the
    monitor.
    """

    def __init__(
        self, authorizer: Authorizer, clock: Clock, credential: str, principal: Principal
    ) -> None:
        self._authorizer = authorizer
        self._clock = clock
        self._credential = credential
        self._changes = authorizer.changes
        self.principal = principal
        self.waker = asyncio.Event()
        self.waiting = False  # authorisation cannot be confirmed: no event is sent
        self.sending = False  # a frame waits until the reader takes it
        self.frames_taken = 0
        self.pings_due = 0  # raised by the monitor
        self.end_reason = "disconnected"  # recorded for listeners that it does not end itself

    @abstractmethod
    def resume_message(self) -> Frame:
        """Return the last message for a reader that takes nothing, before the disconnection."""

    @property
    def wakers(self) -> set[asyncio.Event]:
        """The events that the authorizer sets after a change of a key."""
        return self._authorizer.wakers

    def expired(self) -> bool:
        """Return whether the credential has expired."""
        expires_at_us = self.principal.expires_at_us
        return expires_at_us is not None and expires_at_us <= self._clock.now_us()

    def changed(self) -> bool:
        """Return whether a key changed since this reader's was last checked."""
        return self._changes != self._authorizer.changes

    def known(self) -> bool:
        """Return whether the reader's rights are known without a check."""
        return not (self.changed() or self.expired()) and self._authorizer.fresh()

    def may_get(self, now_us: int) -> bool:
        """Return whether an event may be sent at once, if authorisation is confirmed: no other
        frame waits, and the rights need no check.
        """
        if self.sending or self.waiting or self._changes != self._authorizer.changes:
            return False
        expires_at_us = self.principal.expires_at_us
        return expires_at_us is None or expires_at_us > now_us

    async def confirmed(self) -> bool:
        """Return whether the reader's rights are confirmed; set `waiting` if not. The monitor wakes
        the reader to check again.

        Raises Unauthenticated when the credential is no longer valid.
        """
        if not await self._authorizer.confirmed():
            self.waiting = True
            return False
        try:
            await self.confirm()
        except DatabaseUnavailable:
            self.waiting = True
            return False
        self.waiting = False
        return True

    async def confirm(self) -> None:
        """Authenticate again if a key changed, the credential expired, or the cached rights are
        old.

        Raises Unauthenticated, DatabaseUnavailable.
        """
        if not self.known():
            changes = self._authorizer.changes
            self.principal = await self._authorizer.authenticate(self._credential)
            self._changes = changes
