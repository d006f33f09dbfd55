"""Does a piece of a bulk request: many lines in one transaction with one barrier, each line for
itself. What cannot be done is refused by its line, and the others are done.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from django.db import transaction

from eventhub import limits
from eventhub.access.actor import Actor
from eventhub.access.system import append_announced, prepare, raw_connection
from eventhub.errors import EventHubError, InvalidField, LimitReached
from registrations import rows
from registrations.bulk.lines import Act, Change, Create, End, Line, Target
from registrations.errors import KeyTaken, UnknownRegistration
from registrations.expensive import Budget
from registrations.owners import Owner
from registrations.requests import NewRegistration, RegistrationChange
from registrations.rows import Keyed, NewVersion, Registration, Session, Wanted
from registrations.services import Made, announcement, require_all, session_with_room
from registrations.terms import Names, same


class Refused(NamedTuple):
    """A line that was not done, by its number."""

    line: int
    error: EventHubError


class Applied(NamedTuple):
    """What became of the lines that were looked at, the first ones of those given. The counts and
    `tickets` (of lines: the number and the new registration) tell what is stored now.
    """

    lines: int  # so many were looked at
    created: int
    changed: int
    ended: int
    repeated: int  # lines that were done before, or change nothing
    refused: list[Refused]
    tickets: list[tuple[int, int]]
    sequence: int | None  # in `system`, of the last change; None: nothing was changed


class _Plan:
    """What is to be written, gathered line by line."""

    def __init__(self) -> None:
        self.creates: list[tuple[int, NewRow]] = []
        self.changes: list[tuple[Registration, Wanted]] = []
        self.ends: list[Registration] = []
        self.repeated = 0
        self.refused: list[Refused] = []

    @property
    def empty(self) -> bool:
        return not (self.creates or self.changes or self.ends)


class NewRow(NamedTuple):
    wanted: Wanted
    key: str | None
    group: str | None


class _Known(NamedTuple):
    """What the lines of a turn are about, locked, and what they name."""

    actor: Actor
    owner: Owner
    session: Session
    terms: Names
    keys: dict[str, Keyed]
    live: dict[int, Registration]
    own: dict[int, bool]  # the client's tickets: True while they are live
    names: dict[int, str]  # of streams
    budget: Budget


def apply_lines(*, actor: Actor, owner: Owner, lines: Sequence[Line]) -> Applied:
    """Do the first of the lines: those before one that is about a registration which another one
    of them is about, so that they are done one after the other.

    Raises NotFound when the client has ended.
    """
    connection = raw_connection()
    with transaction.atomic():
        session = session_with_room(owner.id, 0)
        keys = rows.by_key(
            connection, owner.id, {key for act in _acts(lines) if (key := act.target.key)}
        )
        turn = _turn(lines, keys)
        known = _look_up(actor, owner, session, turn, keys)
        plan = _Plan()
        for line in turn:
            _plan_line(plan, known, line)
        if plan.empty:
            return Applied(len(turn), 0, 0, 0, plan.repeated, plan.refused, [], None)
        return _write(known, plan, len(turn))


def _turn(lines: Sequence[Line], keys: dict[str, Keyed]) -> Sequence[Line]:
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


def _look_up(
    actor: Actor, owner: Owner, session: Session, turn: Sequence[Line], keys: dict[str, Keyed]
) -> _Known:
    connection = raw_connection()
    acts = _acts(turn)
    asked = {id for act in acts if (id := _id_of(act.target, keys)) is not None}
    own = rows.own(connection, owner.id, asked) if asked else {}
    found = rows.lock_registrations(connection, [id for id, live in own.items() if live])
    streams = {id for one in found for id in one.streams}
    names = rows.stream_names(connection, streams) if streams else {}
    items: list[NewRegistration | RegistrationChange] = []
    items += [act.item for act in acts if isinstance(act, Create)]
    items += [act.change for act in acts if isinstance(act, Change)]
    terms = Names(actor, owner.id)
    terms.look_up((*names.values(), *(name for item in items for name in item.streams or ())))
    terms.hold(items, found)
    live = {one.id: one for one in found}
    budget = Budget(connection, owner.id, live)
    return _Known(actor, owner, session, terms, keys, live, own, names, budget)


def _acts(lines: Sequence[Line]) -> list[Act]:
    return [line.asked for line in lines if not isinstance(line.asked, EventHubError)]


def _id_of(target: Target, keys: dict[str, Keyed]) -> int | None:
    """Also of a registration that has ended."""
    if target.key is None:
        return target.id
    found = keys.get(target.key)
    return None if found is None else found.id


def _plan_line(plan: _Plan, known: _Known, line: Line) -> None:
    try:
        if isinstance(line.asked, EventHubError):
            raise line.asked
        match line.asked:
            case Create():
                _plan_create(plan, known, line.number, line.asked)
            case Change():
                _plan_change(plan, known, line.asked)
            case End():
                _plan_end(plan, known, line.asked)
    except EventHubError as error:
        error.index = None
        plan.refused.append(Refused(line.number, error))


def _plan_create(plan: _Plan, known: _Known, number: int, act: Create) -> None:
    item = act.item
    if item.client not in (None, known.owner.name):
        message = "All lines are of one client, which the query may name."
        raise InvalidField(message, field="client")
    wanted = known.terms.first(item)
    keyed = known.keys.get(item.key or "")
    if keyed is not None and keyed.live:
        if not same(known.live[keyed.id], wanted):
            raise KeyTaken(field="key", registration=keyed.id)
        plan.repeated += 1
        return
    count = known.session.registrations + len(plan.creates) - len(plan.ends)
    if count >= limits.REGISTRATIONS_PER_CLIENT_MAX:
        raise LimitReached(limit=limits.REGISTRATIONS_PER_CLIENT_MAX)
    known.budget.take(wanted.streams, wanted.expensive)
    plan.creates.append((number, NewRow(wanted, item.key, item.group)))


def _plan_change(plan: _Plan, known: _Known, act: Change) -> None:
    found = known.live.get(_id_of(act.target, known.keys) or 0)
    if found is None:
        raise UnknownRegistration(field="key" if act.target.key else "id")
    require_all(known.actor, found, known.names)
    wanted = known.terms.next(found, [known.names[id] for id in found.streams], act.change)
    if same(found, wanted):
        plan.repeated += 1
    else:
        known.budget.take(wanted.streams, wanted.expensive, found.id)
        plan.changes.append((found, wanted))


def _plan_end(plan: _Plan, known: _Known, act: End) -> None:
    id = _id_of(act.target, known.keys) or 0
    found = known.live.get(id)
    if found is not None:
        require_all(known.actor, found, known.names)
        known.budget.free(found.id)
        plan.ends.append(found)
    elif id in known.own:
        plan.repeated += 1
    else:
        raise UnknownRegistration(field="key" if act.target.key else "id")


def _write(known: _Known, plan: _Plan, lines: int) -> Applied:
    """All that is planned, at one barrier, told last."""
    connection = raw_connection()
    actor, session = known.actor, known.session
    barrier = rows.new_barrier(connection)
    made = _insert(known, plan, barrier)
    changed = [found.id for found, _ in plan.changes]
    ended = [found.id for found in plan.ends]
    if changed or ended:
        rows.end_versions(connection, (*changed, *ended), barrier)
        rows.add_versions(connection, list(_versions(plan.changes)), barrier)
        rows.end(connection, ended)
    rows.count_session(connection, session.id, len(made) - len(ended))
    now = {one.id: one for one in rows.show(connection, changed)} if changed else {}
    names = {**known.names, **known.terms.by_id()}
    told = [announcement(actor, "registration.created", one, names) for one in made]
    for found, wanted in plan.changes:
        streams = tuple(dict.fromkeys((*found.streams, *wanted.streams)))
        told.append(announcement(actor, "registration.changed", now[found.id], names, streams))
    told += [
        announcement(actor, "registration.deleted", one._replace(barrier=barrier), names)
        for one in plan.ends
    ]
    prepared = prepare(zone=actor.zone, announcements=told)
    before = {id for found, _ in plan.changes for id in found.streams}
    after = {id for one in (*now.values(), *plan.ends) for id in one.streams}
    new = {id for one in made for id in one.streams}
    rows.raise_barrier(connection, barrier, before | after | new)
    places = append_announced(prepared)
    tickets = [(number, one.id) for (number, _), one in zip(plan.creates, made, strict=True)]
    counts = (len(made), len(changed), len(ended), plan.repeated)
    return Applied(lines, *counts, plan.refused, tickets, places[-1].sequence)


def _insert(known: _Known, plan: _Plan, barrier: int) -> list[Made]:
    if not plan.creates:
        return []
    whose = rows.Belonging(known.actor.zone_id, known.owner.id, known.session.id)
    new = [row for _, row in plan.creates]
    wanted = [row.wanted for row in new]
    ids = rows.insert(raw_connection(), whose, barrier, wanted, [row.key for row in new])
    name = known.owner.name
    return [
        Made(id, name, asked.streams, barrier, key, asked.suspended, group)
        for id, (asked, key, group) in zip(ids, new, strict=True)
    ]


def _versions(changes: Iterable[tuple[Registration, Wanted]]) -> Iterable[NewVersion]:
    for found, wanted in changes:
        yield NewVersion(found.id, found.number + 1, wanted)
