"""Views of operators, and of their own passwords. Django module."""

from functools import partial
from typing import Any

from django.contrib.auth.models import User
from django.db.models import QuerySet

from eventhub.access.operators import operators
from eventhub.accounts import operator_serializers as serializers
from eventhub.accounts import operators as services
from eventhub.accounts.api import login_state
from eventhub.accounts.serializers import LoginStateSerializer
from eventhub.api.json import LoginJSONParser
from eventhub.api.permissions import AllowAnyone, IsAdmin, IsLoggedIn
from eventhub.api.resource import ResourceView, operation
from eventhub.api.serializers import EmptySerializer
from eventhub.base import errors


class Operators(ResourceView):
    """The operators of the hub, with their roles; managed by admins."""

    noun = "an operator", "operators"
    kind = "operator"
    unknown = partial(errors.NotFound, services.NO_OPERATOR)
    permission_classes = (IsAdmin,)
    queryset = User.objects.all()
    serializer_class = serializers.OperatorSerializer
    lookup_field = "username"
    lookup_url_kwarg = "operator"

    @property
    def changes_zone_id(self) -> int:
        return services.HUB

    @property
    def key(self) -> str:
        text: str = self.kwargs["operator"]
        if not serializers.OPERATOR_NAME.fullmatch(text):
            raise self.not_found()
        return text

    def get_queryset(self) -> QuerySet[Any]:
        return operators()

    @operation(
        "Create an operator; without a password, with a set-up token that is shown only once",
        errors.Conflict,
        errors.LimitReached,
        errors.TooManyRequests,
        body=serializers.NewOperatorSerializer,
        response=serializers.IssuedOperatorSerializer,
    )
    def perform_create(self, body: dict[str, Any]) -> Any:
        return services.create_operator(**body)

    @operation(
        "Change an operator's role or password, or deactivate it",
        errors.LastAdmin,
        errors.TooManyRequests,
        body=serializers.OperatorChangeSerializer,
    )
    def perform_partial_update(self, body: dict[str, Any]) -> Any:
        return services.change_operator(name=self.key, if_match=self.if_match, **body)

    @operation("Delete an operator; its sessions end at once", errors.LastAdmin)
    def perform_destroy(self) -> None:
        services.delete_operator(name=self.key, if_match=self.if_match)


class SetupTokens(Operators):
    """The one-time token with which an operator sets its password."""

    kind = ""  # it has no state that a condition or an ETag could be about

    @operation(
        "Issue a set-up token; it ends the operator's password and sessions",
        errors.LastAdmin,
        body=EmptySerializer,
        response=serializers.SetupTokenSerializer,
    )
    def perform_create(self, body: dict[str, Any]) -> Any:
        return services.issue_setup_token(name=self.key)


class OperatorSetup(ResourceView):
    """The first login of an operator, or one after a reset of its password."""

    permission_classes = (AllowAnyone,)
    parser_classes = (LoginJSONParser,)
    serializer_class = LoginStateSerializer

    @operation(
        "Set an operator's password with a set-up token, and log it in",
        *(errors.InvalidSetupToken, errors.TooManyRequests),
        body=serializers.SetupSerializer,
        status=200,
    )
    def perform_create(self, body: dict[str, Any]) -> dict[str, str]:
        found = login_state(self.request, services.set_up(request=self.request._request, **body))
        self.open_reply()
        return found


class OwnPassword(ResourceView):
    """The password of the operator who is logged in."""

    permission_classes = (IsLoggedIn,)
    serializer_class = LoginStateSerializer

    @operation(
        "Change one's own password; all other sessions of the operator end",
        errors.TooManyRequests,
        body=serializers.PasswordChangeSerializer,
        status=200,
    )
    def perform_create(self, body: dict[str, Any]) -> dict[str, str]:
        user = services.change_own_password(request=self.request._request, **body)
        return login_state(self.request, user)
