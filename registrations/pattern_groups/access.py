"""What the creator of a pattern must be allowed to do: read the streams of its group, write its
outputs, notify its sessions. Django module.
"""

from collections.abc import Iterable, Mapping, Sequence

from eventhub.access.grants import HUB_STREAMS
from eventhub.access.principal import Actor
from eventhub.access.sessions import UnknownSession
from eventhub.api.announcements import raw_connection
from eventhub.base.errors import EventHubError, Forbidden, UnknownStream
from eventhub.eventlog.errors import StreamDeleting
from registrations import statements
from registrations.errors import TransientStream
from registrations.pattern_groups.definition import ParsedPattern
from registrations.pattern_groups.models import PatternGroup
from registrations.sessions.statements import sessions_by_name
from registrations.statements import RegistrationStream


def streams_to_read(actor: Actor, names: Sequence[str]) -> list[RegistrationStream]:
    """Return the streams of a new group. Raises Forbidden, UnknownStream, TransientStream and
    StreamDeleting at the name's position.
    """
    if actor.session is not None:
        actor.session.require("listen")
    found = {}
    for at, name in enumerate(names):
        field = f"streams.{at}"
        actor.require_listen(name, field=field)
        found[name] = _stream(actor, name, field)
    return [*found.values()]


def require_output(
    actor: Actor, streams: Sequence[str], output: str | None
) -> RegistrationStream | None:
    """Return the stream of a group's outputs; None: they go to the streams that it reads, all of
    which the actor must be allowed to emit to. Raises Forbidden, UnknownStream, TransientStream,
    StreamDeleting.
    """
    if output is not None:
        return stream_to_write(actor, output, "output_stream")
    for name in streams:
        if name in HUB_STREAMS:
            message = f"Only the hub itself writes to {name}; give an `output_stream`."
            raise Forbidden(message, field="output_stream")
        try:
            actor.require("emit", name)
        except Forbidden as error:
            error.field = "output_stream"
            raise
    return None


def stream_to_write(actor: Actor, name: str, field: str) -> RegistrationStream:
    """Return a stream to which the actor may emit. Raises what `require_output` raises."""
    try:
        if name in HUB_STREAMS:
            raise Forbidden(f"Only the hub itself writes to {name}; choose another stream.")
        actor.require("emit", name)
    except Forbidden as error:
        error.field = field
        raise
    return _stream(actor, name, field)


def require_group(actor: Actor, group: PatternGroup) -> None:
    """Raise Forbidden unless the actor may read a group's streams and write its outputs."""
    names = require_listen_to_group(actor, group)
    for id in [group.output_stream_id] if group.output_stream_id else group.streams:
        actor.require("emit", names[id])


def require_listen_to_group(actor: Actor, group: PatternGroup) -> dict[int, str]:
    """Return the names of a group's streams by id. Raises Forbidden unless the actor may read all
    that it reads.
    """
    ids = [*group.streams, *filter(None, [group.output_stream_id])]
    names = statements.stream_names(raw_connection(), ids)
    for id in group.streams:
        actor.require_listen(names[id], field="group")
    return names


def require_targets(actor: Actor, client_id: int, items: Iterable[ParsedPattern]) -> None:
    """Check the streams and sessions that the actions of patterns name. Raises at the index of the
    pattern what `stream_to_write` raises, and UnknownSession.
    """
    items = [*items]
    names = {name for item in items for name in item.sessions}
    sessions = sessions_by_name(raw_connection(), client_id, names)
    for index, item in enumerate(items):
        try:
            _require_targets(actor, item, sessions)
        except EventHubError as error:
            error.index = index
            raise


def _require_targets(actor: Actor, item: ParsedPattern, sessions: Mapping[str, object]) -> None:
    for name in sorted(item.streams):
        stream_to_write(actor, name, "text")
    for name in sorted(item.sessions - sessions.keys()):
        raise UnknownSession(field="text", session=name)


def _stream(actor: Actor, name: str, field: str) -> RegistrationStream:
    found = statements.streams_by_name(raw_connection(), actor.zone_id, [name])
    if not found:
        raise UnknownStream(field=field, stream=name)
    if found[0].transient:
        message = "A transient stream is in memory only, so no pattern can be on it."
        raise TransientStream(message, field=field)
    if found[0].deletes_at_us is not None:
        raise StreamDeleting.of(name, found[0].deletes_at_us, field=field)
    return found[0]
