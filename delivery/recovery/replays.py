"""Creates, previews, pauses, resumes and cancels replay runs. Each change is announced in its own
transaction. Django module.
"""

from collections.abc import Sequence
from typing import NamedTuple

from django.contrib.postgres.functions import TransactionNow
from django.db import transaction
from django.db.models import Q, QuerySet

from delivery import selectors
from delivery.errors import ReplayState, UnknownReplay
from delivery.models import ReplayRun
from delivery.recovery.log_pages import SQL, ReplayTarget, node_of, start_of
from delivery.recovery.preview import Preview, PreviewRequest, preview
from delivery.recovery.runs import (
    ACTIVE,
    FailedParams,
    FailedPosition,
    LogParams,
    RunAction,
    StreamRange,
)
from eventhub.access.models import Zone
from eventhub.access.principal import Actor
from eventhub.api.announcements import announce, raw_connection
from eventhub.api.asynchronous import run_connected
from eventhub.base import limits
from eventhub.base.broker import REPLAY, request_task, require_workers
from eventhub.base.client_slots import ClientSlots
from eventhub.base.clock import SystemClock
from eventhub.base.env import read_env
from eventhub.base.errors import InvalidField, LimitReached, MissingField
from eventhub.eventlog import streams
from eventhub.eventlog.archive.reader import archive_of
from eventhub.eventlog.models import Stream
from eventhub.eventlog.read import Start, resolve
from eventhub.eventlog.stored import Cursor
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import scalars
from registrations.errors import TransientStream, UnknownEndpoint, UnknownRegistration
from registrations.filter_source import FilterSource
from registrations.models import Endpoint, Registration, RegistrationVersion
from registrations.scope import scope

_PREVIEWS = ClientSlots(
    limits.REPLAY_PREVIEWS_PER_PROCESS_MAX, limits.REPLAY_PREVIEWS_PER_CLIENT_MAX, of="previews"
)


class ReplayOptions(NamedTuple):
    """How a run sends: deliveries per second, at most; how many; also what was delivered; under new
    ids.
    """

    rate: int = limits.REPLAY_RATE_DEFAULT
    limit: int | None = None
    force: bool = False
    new_id: bool = False


class LogRequest(NamedTuple):
    """Events of the log: of some streams, between two positions, that a filter matches, or a
    version of a registration (None: its present one). Without either: all of them.
    """

    streams: Sequence[str] | None = None
    start: Start = "oldest"
    end: Start | None = None
    filter: FilterSource | None = None
    registration: int | None = None
    version: int | None = None


class FailedRequest(NamedTuple):
    """Deliveries that ended in some states within a time, by the cause of their last failure."""

    states: Sequence[str]
    since_us: int = 0
    until_us: int | None = None
    outcome: str | None = None
    status: int | None = None
    streams: Sequence[str] | None = None


class _Planned(NamedTuple):
    """A run that is not stored yet. `version_id`: of the registration whose report counts."""

    endpoint: Endpoint
    params: LogParams | FailedParams
    version_id: int | None


def list_replays(*, actor: Actor, endpoint: int | None, state: str | None) -> QuerySet[ReplayRun]:
    """Return the runs of the actor's client, or of the zone for its manager."""
    found = ReplayRun.objects.select_related("client").filter(_whose(actor))
    if endpoint is not None:
        found = found.filter(endpoint_id=endpoint)
    return found if state is None else found.filter(state=state)


def find_replay(*, actor: Actor, id: int) -> ReplayRun:
    """Return a run. Raises UnknownReplay."""
    runs = ReplayRun.objects.select_related("client").filter(_whose(actor), pk=id)
    found: ReplayRun | None = runs.first()
    if found is None:
        raise UnknownReplay(field="replay")
    return found


def create_replay(
    *, actor: Actor, endpoint_id: int, request: LogRequest | FailedRequest, options: ReplayOptions
) -> ReplayRun:
    """Start a run. Raises what `preview_replay` raises but TooManyRequests, and LimitReached,
    RedisOff.
    """
    require_workers()
    planned = _plan(actor, endpoint_id, request)
    params, endpoint = planned.params, planned.endpoint
    is_log = isinstance(params, LogParams)
    position = start_of(params) if isinstance(params, LogParams) else FailedPosition()
    with transaction.atomic():
        _require_room(actor, endpoint)
        run = ReplayRun.objects.create(
            zone_id=actor.zone_id,
            client_id=endpoint.client_id,
            endpoint_id=endpoint.pk,
            source="log" if is_log else "deliveries",
            requested_by=_name_of(actor),
            params=params.json(),
            version_id=planned.version_id,
            position=position._asdict(),
            rate=options.rate,
            deliveries_max=options.limit,
            force=options.force,
            new_id=options.new_id,
            total=params.events if isinstance(params, LogParams) else None,
        )
        _announce(actor, run, endpoint.client.name, "replay.started")
    request_task(REPLAY)
    return find_replay(actor=actor, id=run.pk)


def preview_replay(
    *, actor: Actor, endpoint_id: int, request: LogRequest | FailedRequest, options: ReplayOptions
) -> Preview:
    """Return what a run would send now; nothing is written.

    Raises UnknownEndpoint, UnknownStream, UnknownRegistration, TransientStream, Forbidden,
    InvalidField, MissingField, the errors of positions and of reading the log, and TooManyRequests.
    """
    client_id = 0 if actor.principal is None else actor.principal.client_id
    with _PREVIEWS.one(client_id):
        return _preview(actor, endpoint_id, request, options)


def _preview(
    actor: Actor, endpoint_id: int, request: LogRequest | FailedRequest, options: ReplayOptions
) -> Preview:
    planned = _plan(actor, endpoint_id, request)
    endpoint = planned.endpoint
    target = ReplayTarget(
        endpoint.pk, actor.zone_id, actor.zone, endpoint.client.name, endpoint.client.groups
    )
    asked = PreviewRequest(target, planned.params, options.rate, options.limit, options.force)
    archive = archive_of(read_env().archive_url)

    async def previewed(connection: Connection) -> Preview:
        return await preview(connection, archive, SystemClock(), asked)

    return run_connected(previewed, name="replay")


def change_replay(*, actor: Actor, id: int, action: RunAction) -> ReplayRun:
    """Pause, resume or cancel a run. Raises UnknownReplay, ReplayState."""
    with transaction.atomic():
        run = find_replay(actor=actor, id=id)
        ended = {"ended_at": TransactionNow()} if action.result not in ACTIVE else {}
        changed = ReplayRun.objects.filter(pk=run.pk, state__in=action.states).update(
            state=action.result, updated_at=TransactionNow(), waits_for="", **ended
        )
        if not changed:
            state = ReplayRun.objects.values_list("state", flat=True).get(pk=run.pk)
            raise ReplayState(
                f"The run is `{state}`; to {action.name} it, it must be"
                f" {' or '.join(f'`{each}`' for each in action.states)}.",
                field="replay",
                state=state,
            )
        _announce(actor, run, run.client.name, action.announced)
    if action.result == "running":
        request_task(REPLAY)
    return find_replay(actor=actor, id=id)


# --- planning ---


def _plan(actor: Actor, endpoint_id: int, request: LogRequest | FailedRequest) -> _Planned:
    if isinstance(request, FailedRequest):
        return _Planned(_endpoint(actor, endpoint_id), _failed(actor, request), None)
    if request.registration is None and request.version is not None:
        raise MissingField("Name the `registration` of the version.", field="registration")
    if request.registration is not None and request.filter is not None:
        raise InvalidField("Give a filter or a `registration`, not both.", field="registration")
    endpoint = _endpoint(actor, endpoint_id)
    version = _version(actor, endpoint, request)
    ranges = _ranges(actor, request, version)
    if version is None:
        filter = request.filter
        params = LogParams(ranges)
        if filter is not None:
            params = params._replace(language=filter.language, filter=filter.source)
        node_of(params)
        return _Planned(endpoint, params, None)
    own = {"language": version.language, "filter": version.filter}
    params = LogParams(ranges, **own, registration=version.registration_id, version=version.number)
    annotated = version.report is not None or version.variable is not None
    return _Planned(endpoint, params, version.pk if annotated else None)


def _endpoint(actor: Actor, endpoint_id: int) -> Endpoint:
    found = Endpoint.objects.live().select_related("client").filter(_whose(actor), pk=endpoint_id)
    endpoint: Endpoint | None = found.first()
    if endpoint is None:
        raise UnknownEndpoint(field="endpoint")
    return endpoint


def _version(actor: Actor, endpoint: Endpoint, request: LogRequest) -> RegistrationVersion | None:
    """Return the version of a registration that is requested; also of one that has ended."""
    if request.registration is None:
        return None
    owned = Registration.objects.filter(_whose(actor), pk=request.registration)
    found = owned.filter(client_id=endpoint.client_id).first()
    if found is None:
        raise UnknownRegistration(field="registration")
    versions = RegistrationVersion.objects.filter(registration=found).order_by("-number")
    if request.version is not None:
        versions = versions.filter(number=request.version)
    version: RegistrationVersion | None = versions.first()
    if version is None:
        raise InvalidField(
            "The registration has no such version, or not any more.", field="version"
        )
    return version


def _ranges(
    actor: Actor, request: LogRequest, version: RegistrationVersion | None
) -> tuple[StreamRange, ...]:
    """Return the ranges of the streams, up to their present ends at most."""
    connection = raw_connection()
    names = request.streams
    if names is None and version is not None:
        names = _names_of(version.streams)
    if not names:
        raise MissingField("Name the streams whose events are replayed.", field="streams")
    if len(names) > 1 and isinstance(request.start, Cursor):
        raise InvalidField("A cursor is a position in one stream; give a time.", field="from")
    if len(names) > 1 and isinstance(request.end, Cursor):
        raise InvalidField("A cursor is a position in one stream; give a time.", field="to")
    found = []
    for name in dict.fromkeys(names):
        actor.require_listen(name, field="streams")
        stream = streams.get_stream(connection, actor.zone_id, name)
        if stream.policy.durability == "transient":
            raise TransientStream(field="streams")
        found.append(stream)

    async def resolved(own: Connection) -> list[StreamRange]:
        ranges = []
        for stream in found:
            begins = await resolve(own, stream.id, request.start)
            last = begins.head
            if request.end is not None:
                last = min((await resolve(own, stream.id, request.end)).cursor.sequence, last)
            ranges.append(StreamRange(stream.id, stream.name, *begins.cursor, last))
        return ranges

    return tuple(run_connected(resolved, name="replay"))


def _names_of(stream_ids: Sequence[int]) -> list[str]:
    """Return the names of streams, in the order of their ids here."""
    found = dict(Stream.objects.filter(pk__in=stream_ids).values_list("pk", "name"))
    return [found[id] for id in stream_ids if id in found]


def _failed(actor: Actor, request: FailedRequest) -> FailedParams:
    """Return the parameters, with the streams to which the actor is restricted."""
    now_us: int = scalars(raw_connection()).execute(SQL["now"]).fetchone() or 0
    stream_ids = selectors.listened_ids(actor=actor, names=request.streams)
    until_us = now_us if request.until_us is None else min(request.until_us, now_us)
    return FailedParams(
        tuple(request.states),
        request.since_us,
        until_us,
        request.outcome,
        request.status,
        stream_ids,
    )


def _require_room(actor: Actor, endpoint: Endpoint) -> None:
    """Lock the zone, and raise LimitReached if it or the client has too many runs."""
    active = ReplayRun.objects.filter(state__in=ACTIVE, zone_id=actor.zone_id)
    Zone.objects.select_for_update(no_key=True).get(pk=actor.zone_id)
    if active.filter(client_id=endpoint.client_id).count() >= limits.REPLAY_RUNS_PER_CLIENT_MAX:
        raise LimitReached(
            "The client has as many runs as it may; wait for one, or cancel one.",
            limit=limits.REPLAY_RUNS_PER_CLIENT_MAX,
        )
    if active.count() >= limits.REPLAY_RUNS_PER_ZONE_MAX:
        raise LimitReached(
            "The zone has as many runs as it may; wait for one, or cancel one.",
            limit=limits.REPLAY_RUNS_PER_ZONE_MAX,
        )


def _announce(actor: Actor, run: ReplayRun, client: str, type: str) -> None:
    attributes = {
        "replay": run.pk,
        "client": client,
        "endpoint": run.endpoint_id,
        "source": run.source,
    }
    announce(zone=actor.zone, type=type, attributes=attributes)


def _name_of(actor: Actor) -> str:
    return "operator" if actor.principal is None else actor.principal.client


def _whose(actor: Actor) -> Q:
    client_id = scope(actor=actor)
    own = {} if client_id is None else {"client_id": client_id}
    return Q(zone_id=actor.zone_id, **own)
