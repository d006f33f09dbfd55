"""Emits over a websocket, with the rules and answers of the emit route (RDY-52). Plain module."""

from typing import Any

from delivery.listening.messages import EmitMessage
from eventhub.access import roles
from eventhub.access.principal import Principal
from eventhub.access.sessions import UnknownSession, WrongSessionKind
from eventhub.base import limits
from eventhub.base.fair_queue import Admission
from eventhub.event.inbound import JSON, parse
from eventhub.http.emit import EmitServices, Sender, emit, require_emit, require_quotas


class SocketEmits:
    """The emits of all sockets of a process, admitted in fair order together with those of the emit
    route.
    """

    def __init__(self, services: EmitServices, emits: Admission) -> None:
        self._services = services
        self._emits = emits

    async def emit(self, principal: Principal, message: EmitMessage) -> dict[str, Any]:
        """Store the events of a message, all or none; return the answer. Raises what the emit route
        answers.
        """
        authorizer = self._services.authorizer
        if principal.is_operator:
            roles.require(principal.role, roles.OPERATOR)
        if message.session is not None:
            principal = await self._through(principal, message.session)
        require_emit(principal, message.stream)
        info = await authorizer.stream(principal, message.stream)
        if principal.rates is not None or principal.storage_quota is not None:
            await require_quotas(authorizer, principal, info)
        info = await authorizer.lasting(principal, info)
        body = bytes(message.events)
        slots = 1 + len(body) // limits.EMIT_BYTES_PER_SLOT
        async with self._emits.hold(principal.queue_owner, slots):
            emitted = await emit(self._services, Sender(principal), info, parse(body, JSON))
        answer: dict[str, Any] = {"op": "emitted", **emitted.json()}
        if message.session is not None:
            answer["session"] = message.session
        if message.id:
            answer["id"] = message.id
        return answer

    async def _through(self, principal: Principal, session: str) -> Principal:
        """Return the principal as it acts through a supplier session. Raises UnknownSession,
        WrongSessionKind.
        """
        try:
            found = await self._services.authorizer.through(principal, session)
            if found.session is not None:
                found.session.require("emit")
        except (UnknownSession, WrongSessionKind) as error:
            error.field = "session"
            raise
        return found
