"""Applies a batch of a bulk request: many lines in one transaction with one barrier. A refused line
does not affect the others. Django module.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from django.db import transaction

from eventhub.access.principal import Actor
from eventhub.api.announcements import raw_connection
from eventhub.base.errors import EventHubError, InvalidField
from registrations import statements
from registrations.bulk.lines import (
    ChangeLine,
    CreateLine,
    Line,
    LineOperation,
    RegistrationReference,
)
from registrations.errors import KeyTaken, UnknownRegistration
from registrations.filter_budget import EvaluationBudget
from registrations.quotas import Room, room
from registrations.requests import NewRegistration
from registrations.resolver import Resolver, is_same_definition
from registrations.scope import Owner
from registrations.services import (
    ChangePlan,
    PlannedRegistration,
    lock_owner,
    require_listen_to_all,
)
from registrations.statements import KnownRegistration, RegistrationRow


class BatchResult(NamedTuple):
    """The result of the applied lines, which are the first ones of those given. The counts and
    `ids` (pairs of a line's number and the new registration) are what is stored now.
    """

    lines: int  # number of applied lines
    created: int
    changed: int
    ended: int
    repeated: int  # lines that were applied before, or change nothing
    refused: list[tuple[int, EventHubError]]  # lines, by their numbers
    ids: list[tuple[int, int]]
    sequence: int | None  # of the last change in `system`; None: nothing was changed


def apply_lines(*, actor: Actor, owner: Owner, lines: Sequence[Line]) -> BatchResult:
    """Apply the first of the lines: up to a line that names the same registration as an earlier
    one, which has to be applied after it.

    Raises NotFound if the client has ended.
    """
    with transaction.atomic():
        live = lock_owner(owner.id)
        named = {key for operation in _operations(lines) if (key := operation.reference.key)}
        keys = statements.by_key(raw_connection(), owner.id, named)
        batch = _independent_lines(lines, keys)
        return _Batch(ChangePlan(actor, owner, live), batch, keys).apply()


def _independent_lines(lines: Sequence[Line], keys: dict[str, KnownRegistration]) -> Sequence[Line]:
    """Return the lines before the first one that names a registration of an earlier line."""
    named: set[int | str] = set()
    for at, line in enumerate(lines):
        if isinstance(line.operation, EventHubError):
            continue
        reference = line.operation.reference
        keyed = keys.get(reference.key or "")
        id = keyed.id if keyed is not None and keyed.live else reference.id
        names = {name for name in (id, reference.key) if name is not None}
        if named & names:
            return lines[:at]
        named |= names
    return lines


def _operations(lines: Sequence[Line]) -> list[LineOperation]:
    return [line.operation for line in lines if not isinstance(line.operation, EventHubError)]


class _Batch:
    """Lines that are applied together: their registrations are locked, their names are resolved."""

    def __init__(
        self, plan: ChangePlan, lines: Sequence[Line], keys: dict[str, KnownRegistration]
    ) -> None:
        connection = raw_connection()
        self._plan, self._lines, self._keys = plan, lines, keys
        self._creating: list[int] = []  # numbers of the lines that create a registration
        self._repeated = 0
        self._refused: list[tuple[int, EventHubError]] = []
        operations = _operations(lines)
        ids = {id for operation in operations if (id := self._id_of(operation.reference))}
        self._own = statements.own(connection, plan.owner.id, ids) if ids else {}
        live = [id for id, is_live in self._own.items() if is_live]
        self._live = {one.id: one for one in statements.lock_registrations(connection, live)}
        found = self._live.values()
        streams = {id for one in found for id in one.streams}
        self._names = statements.stream_names(connection, streams) if streams else {}
        items = [
            operation.item
            for operation in operations
            if isinstance(operation, CreateLine | ChangeLine)
        ]
        self._resolver = Resolver(plan.actor, plan.owner.id)
        named = (name for item in items for name in item.streams or ())
        self._resolver.look_up((*self._names.values(), *named))
        self._resolver.lock(items, found)
        self._budget = EvaluationBudget(connection, plan.owner.id, self._live)

    @cached_property
    def _room(self) -> Room:
        """The room for more registrations, once one is created."""
        plan = self._plan
        return room("registrations", plan.actor.zone_id, plan.owner.id, used=plan.live)

    def apply(self) -> BatchResult:
        """Plan line by line, then store the whole plan."""
        for line in self._lines:
            try:
                self._plan_line(line)
            except EventHubError as error:
                error.index = None
                self._refused.append((line.number, error))
        plan = self._plan
        counts = (len(plan.creates), len(plan.changes), len(plan.ends), self._repeated)
        ids: list[tuple[int, int]] = []
        sequence = None
        if any(counts[:3]):
            created = plan.store(self._names | self._resolver.stream_names())
            ids = list(zip(self._creating, created, strict=True))
            _, sequence = plan.announce()
        return BatchResult(len(self._lines), *counts, self._refused, ids, sequence)

    def _plan_line(self, line: Line) -> None:
        """Add the line to the plan. Raises the error that refuses it."""
        operation = line.operation
        if isinstance(operation, EventHubError):
            raise operation
        if isinstance(operation, CreateLine):
            if self._create(operation.item):
                self._creating.append(line.number)
            return
        id = self._id_of(operation.reference)
        found = self._live.get(id)
        if found is None:
            if id in self._own and not isinstance(operation, ChangeLine):
                self._repeated += 1
                return
            raise UnknownRegistration(field="key" if operation.reference.key else "id")
        require_listen_to_all(self._plan.actor, found, self._names)
        if isinstance(operation, ChangeLine):
            self._change(found, operation)
        else:
            self._budget.free(found.id)
            self._plan.ends.append(found)

    def _id_of(self, reference: RegistrationReference) -> int:
        """Return the id of the registration, live or ended; 0: there is none."""
        if reference.key is None:
            return reference.id or 0
        found = self._keys.get(reference.key)
        return 0 if found is None else found.id

    def _create(self, item: NewRegistration) -> bool:
        """Plan a creation; return False if the same registration exists."""
        plan = self._plan
        if item.client not in (None, plan.owner.name):
            message = "All lines belong to one client; name another one in the query (`client`)."
            raise InvalidField(message, field="client")
        definition = self._resolver.new_definition(item)
        keyed = self._keys.get(item.key or "")
        if keyed is not None and keyed.live:
            if not is_same_definition(self._live[keyed.id], definition):
                raise KeyTaken(field="key", registration=keyed.id)
            self._repeated += 1
            return False
        if len(plan.creates) - len(plan.ends) >= self._room.left:
            raise self._room.refusal
        self._budget.take(definition.streams, definition.expensive)
        owner = self._resolver.owner(item)
        plan.creates.append(PlannedRegistration(item.key, definition, owner))
        return True

    def _change(self, found: RegistrationRow, operation: ChangeLine) -> None:
        streams = [self._names[id] for id in found.streams]
        definition = self._resolver.changed_definition(found, streams, operation.item)
        if is_same_definition(found, definition):
            self._repeated += 1
        else:
            self._budget.take(definition.streams, definition.expensive, found.id)
            self._plan.changes.append((found, definition))
