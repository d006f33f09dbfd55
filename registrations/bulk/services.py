"""Does a piece of a bulk request: many lines in one transaction with one barrier, each line for
itself. What cannot be done is refused by its line, and the others are done. Django module.
"""

from collections.abc import Sequence
from typing import NamedTuple

from django.db import transaction

from eventhub.access.actor import Actor
from eventhub.api.announcements import raw_connection
from eventhub.base import limits
from eventhub.base.errors import EventHubError, InvalidField, LimitReached
from registrations import rows
from registrations.bulk.lines import Act, Change, Create, Line, Target
from registrations.errors import KeyTaken, UnknownRegistration
from registrations.expensive import EvaluationBudget
from registrations.owners import Owner
from registrations.requests import NewRegistration
from registrations.rows import Known, Registration
from registrations.services import Plan, require_all, session_with_room
from registrations.terms import Names, same


class Applied(NamedTuple):
    """What became of the lines that were looked at, the first ones of those given. The counts and
    `tickets` (of lines: the number and the new registration) tell what is stored now.
    """

    lines: int  # so many were looked at
    created: int
    changed: int
    ended: int
    repeated: int  # lines that were done before, or change nothing
    refused: list[tuple[int, EventHubError]]  # lines, by their numbers
    tickets: list[tuple[int, int]]
    sequence: int | None  # in `system`, of the last change; None: nothing was changed


def apply_lines(*, actor: Actor, owner: Owner, lines: Sequence[Line]) -> Applied:
    """Do the first of the lines: those before one that is about a registration which another one
    of them is about, so that they are done one after the other.

    Raises NotFound when the client has ended.
    """
    with transaction.atomic():
        session = session_with_room(owner.id, 0)
        named = {key for act in _acts(lines) if (key := act.target.key)}
        keys = rows.by_key(raw_connection(), owner.id, named)
        turn = _turn(lines, keys)
        return _Turn(Plan(actor, owner, session), turn, keys).apply()


def _turn(lines: Sequence[Line], keys: dict[str, Known]) -> Sequence[Line]:
    """The lines before the first one whose registration is named by one before it."""
    met: set[int | str] = set()
    for at, line in enumerate(lines):
        if isinstance(line.asked, EventHubError):
            continue
        target = line.asked.target
        keyed = keys.get(target.key or "")
        id = keyed.id if keyed is not None and keyed.live else target.id
        names = {name for name in (id, target.key) if name is not None}
        if met & names:
            return lines[:at]
        met |= names
    return lines


def _acts(lines: Sequence[Line]) -> list[Act]:
    return [line.asked for line in lines if not isinstance(line.asked, EventHubError)]


class _Turn:
    """Lines that are done together: what they are about is locked, and what they name is known."""

    def __init__(self, plan: Plan, lines: Sequence[Line], keys: dict[str, Known]) -> None:
        connection = raw_connection()
        self._plan, self._lines, self._keys = plan, lines, keys
        self._creating: list[int] = []  # the numbers of the lines that make something
        self._repeated = 0
        self._refused: list[tuple[int, EventHubError]] = []
        acts = _acts(lines)
        asked = {id for act in acts if (id := self._id_of(act.target))}
        self._own = rows.own(connection, plan.owner.id, asked) if asked else {}
        live = [id for id, is_live in self._own.items() if is_live]
        self._live = {one.id: one for one in rows.lock_registrations(connection, live)}
        found = self._live.values()
        streams = {id for one in found for id in one.streams}
        self._names = rows.stream_names(connection, streams) if streams else {}
        items = [act.item for act in acts if isinstance(act, Create | Change)]
        self._terms = Names(plan.actor, plan.owner.id)
        named = (name for item in items for name in item.streams or ())
        self._terms.look_up((*self._names.values(), *named))
        self._terms.hold(items, found)
        self._budget = EvaluationBudget(connection, plan.owner.id, self._live)

    def apply(self) -> Applied:
        """Plan line by line, then write all that is planned."""
        for line in self._lines:
            try:
                self._plan_line(line)
            except EventHubError as error:
                error.index = None
                self._refused.append((line.number, error))
        plan = self._plan
        counts = (len(plan.creates), len(plan.changes), len(plan.ends), self._repeated)
        tickets: list[tuple[int, int]] = []
        sequence = None
        if any(counts[:3]):
            ids = plan.store(self._names | self._terms.by_id())
            tickets = list(zip(self._creating, ids, strict=True))
            _, sequence = plan.announce()
        return Applied(len(self._lines), *counts, self._refused, tickets, sequence)

    def _plan_line(self, line: Line) -> None:
        """Raises what refuses the line."""
        act = line.asked
        if isinstance(act, EventHubError):
            raise act
        if isinstance(act, Create):
            if self._create(act.item):
                self._creating.append(line.number)
            return
        id = self._id_of(act.target)
        found = self._live.get(id)
        if found is None:
            if id in self._own and not isinstance(act, Change):
                self._repeated += 1
                return
            raise UnknownRegistration(field="key" if act.target.key else "id")
        require_all(self._plan.actor, found, self._names)
        if isinstance(act, Change):
            self._change(found, act)
        else:
            self._budget.free(found.id)
            self._plan.ends.append(found)

    def _id_of(self, target: Target) -> int:
        """Also of a registration that has ended; 0: none."""
        if target.key is None:
            return target.id or 0
        found = self._keys.get(target.key)
        return 0 if found is None else found.id

    def _create(self, item: NewRegistration) -> bool:
        """False if it is there."""
        plan = self._plan
        if item.client not in (None, plan.owner.name):
            message = "All lines are of one client, which the query may name."
            raise InvalidField(message, field="client")
        wanted = self._terms.first(item)
        keyed = self._keys.get(item.key or "")
        if keyed is not None and keyed.live:
            if not same(self._live[keyed.id], wanted):
                raise KeyTaken(field="key", registration=keyed.id)
            self._repeated += 1
            return False
        count = plan.session.registrations + len(plan.creates) - len(plan.ends)
        if count >= limits.REGISTRATIONS_PER_CLIENT_MAX:
            raise LimitReached(limit=limits.REGISTRATIONS_PER_CLIENT_MAX)
        self._budget.take(wanted.streams, wanted.expensive)
        plan.creates.append((item.key, wanted))
        return True

    def _change(self, found: Registration, act: Change) -> None:
        streams = [self._names[id] for id in found.streams]
        wanted = self._terms.next(found, streams, act.item)
        if same(found, wanted):
            self._repeated += 1
        else:
            self._budget.take(wanted.streams, wanted.expensive, found.id)
            self._plan.changes.append((found, wanted))
