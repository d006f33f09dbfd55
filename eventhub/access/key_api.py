"""Doors to API keys, connection tokens and operators' logins."""

from django.contrib.auth import logout
from django.middleware.csrf import get_token
from rest_framework.request import Request
from rest_framework.response import Response

from eventhub import errors
from eventhub.access import key_services, login, selectors, token_services
from eventhub.access.api import NAMED, PAGED
from eventhub.access.conditions import if_match, tagged, with_changes
from eventhub.access.keys import is_public_id
from eventhub.access.names import valid_name
from eventhub.access.parsers import LoginJSONParser
from eventhub.access.principal import Principal
from eventhub.access.schema import CHANGE, PAGE, ZONE, Operation, documented, page_of
from eventhub.access.serializers import (
    IssuedKeySerializer,
    KeyChangeSerializer,
    KeySerializer,
    LoginSerializer,
    LoginStateSerializer,
    NewKeySerializer,
    TokenRequestSerializer,
    TokenSerializer,
    key_json,
)
from eventhub.access.view import (
    ManagementView,
    OpenView,
    actor_of,
    cut_page,
    read_body,
    read_page,
)
from eventhub.eventlog.errors import Changed


class ClientKeys(ManagementView):
    """The keys of a client."""

    queries = frozenset({"after", "limit"})

    @documented(
        Operation(
            "List a client's keys",
            {200: page_of(KeySerializer)},
            (*NAMED, *PAGED),
            parameters=(ZONE, *PAGE),
        )
    )
    def get(self, request: Request, client: str) -> Response:
        actor = actor_of(request)
        actor.require_zone_manager()
        valid_name(client, field="client")
        page = read_page(request)
        owner = selectors.find_client(zone_id=actor.zone_id, name=client)
        keys = selectors.list_keys(client_id=owner.pk, after=page.after, count=page.limit + 1)
        items, after = cut_page(keys, page.limit, lambda key: key.public_id)
        found = with_changes(
            map(key_json, items), "key", actor.zone_id, [key.public_id for key in items]
        )
        return Response({"items": found, "next": after})

    @documented(
        Operation(
            "Issue a key; it is shown this once",
            {201: IssuedKeySerializer},
            (*NAMED, errors.MissingField, errors.WiderGrant, errors.LimitReached),
            NewKeySerializer,
        )
    )
    def post(self, request: Request, client: str) -> Response:
        actor = actor_of(request)
        actor.require_zone_manager()
        valid_name(client, field="client")
        terms = key_services.KeyTerms(**read_body(request, NewKeySerializer))
        owner = selectors.find_client(zone_id=actor.zone_id, name=client)
        issued = key_services.issue_key(actor=actor, client=owner, terms=terms)
        answer = {**key_json(issued.row), "key": issued.text}
        reply = tagged(answer, key_services.key_resource(issued.row), 201)
        reply["Cache-Control"] = "no-store"
        return reply


class OneKey(ManagementView):
    """One key, by its public id."""

    @documented(Operation("Show a key", {200: KeySerializer}, (errors.NotFound,)))
    def get(self, request: Request, public_id: str) -> Response:
        actor = actor_of(request)
        actor.require_zone_manager()
        _known(public_id)
        key = selectors.find_key(zone_id=actor.zone_id, public_id=public_id)
        return tagged(key_json(key), key_services.key_resource(key))

    @documented(
        Operation(
            "Change a key's grants or label",
            {200: KeySerializer},
            (
                *(errors.NotFound, errors.FieldTooLong, errors.MissingField),
                *(errors.WiderGrant, Changed),
            ),
            KeyChangeSerializer,
            CHANGE,
        )
    )
    def patch(self, request: Request, public_id: str) -> Response:
        actor = actor_of(request)
        actor.require_zone_manager()
        _known(public_id)
        change = key_services.KeyChange(**read_body(request, KeyChangeSerializer))
        key = key_services.change_key(
            actor=actor, public_id=public_id, change=change, if_match=if_match(request)
        )
        return tagged(key_json(key), key_services.key_resource(key))

    @documented(
        Operation("Revoke a key", {204: None}, (errors.NotFound, Changed), parameters=CHANGE)
    )
    def delete(self, request: Request, public_id: str) -> Response:
        actor = actor_of(request)
        actor.require_zone_manager()
        _known(public_id)
        key_services.revoke_key(actor=actor, public_id=public_id, if_match=if_match(request))
        return Response(status=204)


class ConnectionTokens(ManagementView):
    """Short-lived tokens for pages that cannot send headers: a key's, or an operator's login's to
    listen in one zone.
    """

    @documented(
        Operation(
            "Mint a connection token",
            {201: TokenSerializer},
            (*NAMED, errors.WiderGrant, errors.MissingField),
            TokenRequestSerializer,
        )
    )
    def post(self, request: Request) -> Response:
        actor = actor_of(request)
        body = read_body(request, TokenRequestSerializer)
        if actor.principal is None:
            claims = login.claims_of(
                request=request._request, zone_id=actor.zone_id, grants=body["grants"]
            )
            minted = token_services.mint_for_login(login=claims, lifetime_s=body["lifetime_s"])
        else:
            minted = token_services.mint(principal=actor.principal, **body)
        return Response(minted._asdict(), 201, headers={"Cache-Control": "no-store"})


class Login(OpenView):
    """An operator's login for browsers."""

    conditional = False
    parser_classes = (LoginJSONParser,)

    @documented(
        Operation(
            "Show who is logged in",
            {200: LoginStateSerializer},
            (errors.Unauthenticated,),
            parameters=(),
            open=True,
        )
    )
    def get(self, request: Request) -> Response:
        if request.user is None or isinstance(request.auth, Principal):
            raise errors.Unauthenticated("Nobody is logged in; use POST /v1/session.")
        return _login_state(request, request.user.get_username())

    @documented(
        Operation(
            "Log an operator in",
            {200: LoginStateSerializer},
            (errors.InvalidLogin, errors.TooManyRequests, errors.MissingField, errors.FieldTooLong),
            LoginSerializer,
            (),
            open=True,
        )
    )
    def post(self, request: Request) -> Response:
        login.count_attempt(request=request._request)
        body = read_body(request, LoginSerializer)
        user = login.log_in(request=request._request, **body)
        return _login_state(request, user.get_username())

    @documented(Operation("Log out", {204: None}, (errors.CsrfFailed,), parameters=(), open=True))
    def delete(self, request: Request) -> Response:
        if request.user is not None and not isinstance(request.auth, Principal):
            logout(request._request)
        return Response(status=204)


def _login_state(request: Request, username: str) -> Response:
    state = {"username": username, "csrf_token": get_token(request._request)}
    return Response(state, headers={"Cache-Control": "no-store"})


def _known(public_id: str) -> None:
    if not is_public_id(public_id):
        raise errors.NotFound("This zone has no such key.", field="public_id")
