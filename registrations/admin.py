"""The back office's pages of registrations and endpoints. Django module."""

from django.contrib import admin

from eventhub.api.back_office import ReadOnly
from registrations.models import (
    Barrier,
    Circuit,
    Endpoint,
    EndpointHealth,
    EndpointSecret,
    EndpointToken,
    EndpointVerification,
    IndexBuild,
    PurgedVersion,
    Registration,
    RegistrationGroup,
    RegistrationOwner,
    RegistrationVersion,
    Suspension,
)


@admin.register(RegistrationOwner)
class RegistrationOwnerAdmin(ReadOnly):
    list_display = ("client", "registrations")
    list_select_related = ("client",)
    search_fields = ("client__name",)


@admin.register(Endpoint)
class EndpointAdmin(ReadOnly):
    hidden = frozenset({"secret"})
    list_display = ("id", "client", "url", "ordered", "format", "enabled", "reason", "deleted_at")
    list_filter = ("enabled", "ordered", "format", ("deleted_at", admin.EmptyFieldListFilter))
    list_select_related = ("client",)
    search_fields = ("url", "description", "client__name")


@admin.register(EndpointSecret)
class EndpointSecretAdmin(ReadOnly):
    hidden = frozenset({"sealed"})
    list_display = ("id", "endpoint", "kind", "public", "created_at", "expires_at")
    list_filter = ("kind", ("expires_at", admin.EmptyFieldListFilter))
    list_select_related = ("endpoint",)


@admin.register(EndpointToken)
class EndpointTokenAdmin(ReadOnly):
    hidden = frozenset({"sealed"})
    list_display = ("endpoint", "obtained_at", "expires_at", "claimed_until", "error")
    list_select_related = ("endpoint",)


@admin.register(EndpointHealth)
class EndpointHealthAdmin(ReadOnly):
    list_display = ("endpoint", "outcome", "status", "attempted_at", "delivered_at")
    list_filter = ("outcome", ("failing_since", admin.EmptyFieldListFilter))
    list_select_related = ("endpoint",)


@admin.register(Circuit)
class CircuitAdmin(ReadOnly):
    list_display = ("endpoint", "state", "failures", "failing_since", "pause_s", "retry_at")
    list_filter = ("state",)
    list_select_related = ("endpoint",)


@admin.register(EndpointVerification)
class EndpointVerificationAdmin(ReadOnly):
    list_display = ("endpoint", "outcome", "status", "requested_at", "ended_at")
    list_filter = ("outcome",)
    list_select_related = ("endpoint",)


@admin.register(Barrier)
class BarrierAdmin(ReadOnly):
    list_display = ("id", "streams", "sequences", "created_at")


@admin.register(RegistrationGroup)
class RegistrationGroupAdmin(ReadOnly):
    list_display = ("id", "name", "client", "registrations", "created_at", "deleted_at")
    list_filter = (("deleted_at", admin.EmptyFieldListFilter),)
    list_select_related = ("client",)
    search_fields = ("name", "client__name")


@admin.register(Suspension)
class SuspensionAdmin(ReadOnly):
    list_display = ("id", "group", "from_barrier", "until_barrier")
    list_filter = (("until_barrier", admin.EmptyFieldListFilter),)
    list_select_related = ("group", "from_barrier", "until_barrier")


@admin.register(Registration)
class RegistrationAdmin(ReadOnly):
    list_display = ("id", "client", "key", "created_at", "deleted_at")
    list_filter = (("deleted_at", admin.EmptyFieldListFilter),)
    list_select_related = ("client",)
    search_fields = ("=key", "=client__name")


@admin.register(RegistrationVersion)
class RegistrationVersionAdmin(ReadOnly):
    list_display = ("id", "registration", "number", "language", "endpoint", "suspended")
    list_filter = ("language", "suspended", ("until_barrier", admin.EmptyFieldListFilter))
    list_select_related = ("registration", "endpoint")
    search_fields = ("=registration__id",)


@admin.register(PurgedVersion)
class PurgedVersionAdmin(ReadOnly):
    list_display = ("stream", "xid", "history")
    list_select_related = ("stream",)


@admin.register(IndexBuild)
class IndexBuildAdmin(ReadOnly):
    list_display = ("stream", "stage", "done", "expected", "started_at", "ended_at", "reason")
    list_filter = ("reason",)
    list_select_related = ("stream",)
