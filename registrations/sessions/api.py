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
from eventhub.sessions.models import Kind, Session, SessionClaim, SessionCursor, SessionGroup
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
    claims_of,
    positions_of,
)
from registrations.sessions.serializers import (
    NewSessionGroupSerializer,
    NewSessionSerializer,
    SessionChangeSerializer,
    SessionClaimSerializer,
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
        return self.named(self.get_queryset())

    def named(self, queryset: QuerySet) -> Any:
        """Return the row that the path names by its id or its name. A name of a session is one of
        the key's own client, because only there it is unique. Raises `unknown`.
        """
        text = self.kwargs[self.lookup_url_kwarg]
        id = id_in_path(text)
        if id is not None:
            found = queryset.filter(pk=id)
        elif queryset.model is SessionGroup:
            found = queryset.filter(name=text)
        elif (own := self.actor.principal) is not None:
            found = queryset.filter(name=text, client_id=own.client_id)
        else:
            found = queryset.none()
        row = found.first() if NAME.fullmatch(text) else None
        if row is None:
            raise self.not_found()
        return row

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


class SessionItems(SessionsView):
    """What a consumer session has."""

    unknown: Any = UnknownSession
    lookup_url_kwarg = "session"
    owners: QuerySet = CLIENTS_SESSIONS
    filterset_class = FilterSet

    @property
    def owner_in_path(self) -> Any:
        """The session, or the session group, that the path names. Raises `unknown`."""
        return self.named(self.visible(self.owners.all()))


class SessionGroupItems(SessionItems):
    """What a session group has whose members share; of another one a list is empty."""

    unknown = UnknownSessionGroup
    lookup_url_kwarg = "session_group"
    owners = SessionGroup.objects.all()


class SessionPositions(SessionItems):
    """The positions of a consumer session, by stream."""

    queryset = SessionCursor.objects.all()
    serializer_class = SessionPositionSerializer
    ordering = ("stream",)

    @operation("List the positions of a session by stream")
    def get_queryset(self) -> QuerySet[SessionCursor]:
        return positions_of(actor=self.actor, owner=self.owner_in_path)


class SessionGroupPositions(SessionGroupItems):
    """The positions of a session group whose members share, by stream."""

    queryset = SessionCursor.objects.all()
    serializer_class = SessionPositionSerializer
    ordering = ("stream",)

    @operation("List the positions of a session group whose members share, by stream")
    def get_queryset(self) -> QuerySet[SessionCursor]:
        return positions_of(actor=self.actor, owner=self.owner_in_path)


class SessionClaims(SessionItems):
    """The events that a session was handed out and has not acknowledged."""

    queryset = SessionClaim.objects.all()
    serializer_class = SessionClaimSerializer

    @operation("List the events that a session was handed out and has not acknowledged")
    def get_queryset(self) -> QuerySet[SessionClaim]:
        return claims_of(actor=self.actor, owner=self.owner_in_path)


class SessionGroupClaims(SessionGroupItems):
    """The events that the members of a session group share and have not acknowledged."""

    queryset = SessionClaim.objects.all()
    serializer_class = SessionClaimSerializer

    @operation("List the events that members of a session group share and have not acknowledged")
    def get_queryset(self) -> QuerySet[SessionClaim]:
        return claims_of(actor=self.actor, owner=self.owner_in_path)


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
