"""Whoever is told events over one connection, for as long as its credential counts: the part that
every door shares and the keeper looks after. Plain module.
"""

import asyncio
from abc import ABC, abstractmethod

from delivery.listening.frames import Frame
from eventhub.access.authorizer import Authorizer
from eventhub.access.principal import Principal
from eventhub.base.clock import Clock
from eventhub.base.errors import DatabaseUnavailable


class Reader(ABC):
    """A credential and whom it stands for.

    `waker` is set by whatever may have something for this reader: rings, the authorizer,
    the keeper.
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
        self.pings_due = 0  # raised by the keeper
        self.why = "disconnected"  # recorded end reason of listeners that it does not end itself

    @abstractmethod
    def resume_message(self) -> Frame:
        """What a reader that takes nothing is told before its connection is dropped."""

    @property
    def wakers(self) -> set[asyncio.Event]:
        """Those that the authorizer sets when a key changed."""
        return self._authorizer.wakers

    def expired(self) -> bool:
        """True when the credential's time is over."""
        expires_at_us = self.principal.expires_at_us
        return expires_at_us is not None and expires_at_us <= self._clock.now_us()

    def changed(self) -> bool:
        """True if a key changed since this one was last asked about."""
        return self._changes != self._authorizer.changes

    def known(self) -> bool:
        """True while what this reader may needs no look."""
        return not (self.changed() or self.expired()) and self._authorizer.fresh()

    async def confirmed(self) -> bool:
        """True while it is known what this reader may; `waiting` is the opposite. The keeper wakes
        it to ask again.

        Raises Unauthenticated when its credential is no longer valid.
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
        """Ask again if a key changed, the credential ended, or what is known is old.

        Raises Unauthenticated, DatabaseUnavailable.
        """
        if not self.known():
            changes = self._authorizer.changes
            self.principal = await self._authorizer.authenticate(self._credential)
            self._changes = changes
