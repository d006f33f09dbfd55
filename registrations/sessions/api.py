"""The API of sessions and session groups. Django module."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from eventhub.access.names import NAME, id_in_path
from eventhub.access.sessions import ADMIN, UnknownSession
from eventhub.api.filters import FilterSet, NameFilter, WordFilter
from eventhub.api.if_match import require_unchanged
from eventhub.api.permissions import IsAuthenticated
from eventhub.api.resource import operation
from eventhub.base import errors
from eventhub.sessions.models import Kind, Session, SessionCursor, SessionGroup
from registrations.errors import (
    SessionExists,
    SessionGroupExists,
    SessionGroupInUse,
    UnknownSessionGroup,
)
from registrations.filtersets import OwnedFilterSet
from registrations.resource import OwnedView
from registrations.services import lock_owner
from registrations.sessions import services
from registrations.sessions.selectors import (
    CLIENTS_SESSIONS,
    SESSION_GROUPS,
    SESSIONS,
    positions_of,
)
from registrations.sessions.serializers import (
    NewSessionGroupSerializer,
    NewSessionSerializer,
    SessionChangeSerializer,
    SessionGroupChangeSerializer,
    SessionGroupSerializer,
    SessionPositionSerializer,
    SessionSerializer,
)


class ManagesSessions(IsAuthenticated):
    """Open to every key of the zone; a request through a session needs an admin session to change
    something.
    """

    def require(self, view: Any) -> None:
        session = view.actor.session
        if session is not None and view.request.method not in ("GET", "HEAD"):
            session.require_kind(ADMIN)


class SessionFilters(OwnedFilterSet):
    name = NameFilter(help_text="Only those with this name.")
    kind = WordFilter(Kind.of_clients(), help_text="Only those of this kind.")
    group = NameFilter(
        field_name="group__name", help_text="Only the members of this session group."
    )


class SessionGroupFilters(OwnedFilterSet):
    name = NameFilter(help_text="Only the one with this name.")


class SessionsView(OwnedView):
    """A view of sessions or session groups. A change locks their client first."""

    permission_classes = (ManagesSessions,)

    def get_object(self) -> Any:
        found = self.in_path(self.get_queryset())
        if found is None:
            raise self.not_found()
        return found

    def in_path(self, queryset: QuerySet) -> Any:
        """Return the row that the path names by its id or its name; None if there is none. A name
        of a session is one of the key's own client: only there it is unique.
        """
        text = self.kwargs[self.lookup_url_kwarg]
        id = id_in_path(text)
        if id is not None:
            return queryset.filter(pk=id).first()
        if not NAME.fullmatch(text):
            return None
        if queryset.model is Session:
            own = self.actor.principal
            queryset = queryset.filter(client_id=None if own is None else own.client_id)
        return queryset.filter(name=text).first()

    @contextmanager
    def changing(self) -> Iterator[Any]:
        """Lock the client of the row that the path names until the end of the block, which is a
        transaction, and yield the row as read after it. Raises `unknown`, Changed.
        """
        with transaction.atomic():
            lock_owner(self.get_object().client_id)
            found = self.get_object()
            require_unchanged(self.resource(found), self.if_match)
            yield found


class Sessions(SessionsView):
    """The sessions of a client, or of all clients of a zone. Another client's session is not
    found.
    """

    noun = "a session", "sessions"
    kind = "session"
    unknown = UnknownSession
    lookup_url_kwarg = "session"
    queryset = SESSIONS
    serializer_class = SessionSerializer
    filterset_class = SessionFilters

    @operation(
        "Create a session",
        *(SessionExists, errors.LimitReached, UnknownSessionGroup),
        body=NewSessionSerializer,
    )
    def perform_create(self, body: dict[str, Any]) -> Session:
        return services.create_session(actor=self.actor, owner=self.owner(body), fields=body)

    @operation(
        "Change, suspend, resume, disconnect or connect a session",
        *(UnknownSessionGroup, errors.LimitReached),
        body=SessionChangeSerializer,
    )
    def perform_partial_update(self, body: dict[str, Any]) -> Session:
        with self.changing() as session:
            return services.change_session(actor=self.actor, session=session, fields=body)

    @operation("Delete a session with its registrations")
    def perform_destroy(self) -> None:
        with self.changing() as session:
            services.delete_session(actor=self.actor, session=session)


class SessionPositions(SessionsView):
    """The positions of a consumer session, by stream."""

    unknown = UnknownSession
    lookup_url_kwarg = "session"
    queryset = SessionCursor.objects.all()
    serializer_class = SessionPositionSerializer
    filterset_class = FilterSet
    ordering = ("stream",)

    @operation("List the positions of a session by stream")
    def get_queryset(self) -> QuerySet[SessionCursor]:
        found = self.in_path(self.visible(CLIENTS_SESSIONS.all()))
        if found is None:
            raise self.not_found()
        return positions_of(actor=self.actor, session=found)


class SessionGroups(SessionsView):
    """The session groups of a client, or of all clients of a zone. Another client's group is not
    found.
    """

    noun = "a session group", "session groups"
    kind = "session_group"
    unknown = UnknownSessionGroup
    lookup_url_kwarg = "session_group"
    queryset = SESSION_GROUPS
    serializer_class = SessionGroupSerializer
    filterset_class = SessionGroupFilters

    @operation(
        "Create a session group",
        *(SessionGroupExists, errors.LimitReached),
        body=NewSessionGroupSerializer,
    )
    def perform_create(self, body: dict[str, Any]) -> SessionGroup:
        return services.create_session_group(actor=self.actor, owner=self.owner(body), fields=body)

    @operation(
        "Change, suspend, resume, disconnect or connect a session group",
        body=SessionGroupChangeSerializer,
    )
    def perform_partial_update(self, body: dict[str, Any]) -> SessionGroup:
        with self.changing() as group:
            return services.change_session_group(actor=self.actor, group=group, fields=body)

    @operation("Delete a session group without members, with its registrations", SessionGroupInUse)
    def perform_destroy(self) -> None:
        with self.changing() as group:
            services.delete_session_group(actor=self.actor, group=group)
