"""Zones, clients, keys and operators in the back office. Django module."""

from django.contrib import admin
from django.contrib.auth.models import Group, User

from eventhub.access.models import ApiKey, Channel, Client, LoginAttempts, Quota, Zone
from eventhub.access.operators import role_of
from eventhub.api.back_office import ReadOnly

admin.site.unregister([Group, User])  # Django's own pages of these models allow changes


@admin.register(User)
class UserAdmin(ReadOnly):
    """Operators."""

    hidden = frozenset({"password"})
    list_display = ("username", "role", "is_active", "last_login")
    list_filter = ("is_active", "is_superuser")
    search_fields = ("username",)

    @admin.display(description="Role")
    def role(self, user: User) -> str:
        return role_of(user)


@admin.register(Zone)
class ZoneAdmin(ReadOnly):
    list_display = ("id", "name")
    search_fields = ("name",)


@admin.register(Client)
class ClientAdmin(ReadOnly):
    list_display = ("name", "zone", "created_at", "deleted_at")
    list_filter = (("deleted_at", admin.EmptyFieldListFilter),)
    list_select_related = ("zone",)
    search_fields = ("name", "zone__name")


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnly):
    hidden = frozenset({"digest"})
    list_display = ("public_id", "client", "label", "created_at", "expires_at", "revoked_at")
    list_filter = (("revoked_at", admin.EmptyFieldListFilter), "created_at")
    list_select_related = ("client",)
    search_fields = ("public_id", "label", "client__name")


@admin.register(Channel)
class ChannelAdmin(ReadOnly):
    list_display = ("name", "bit", "zone")
    list_select_related = ("zone",)
    search_fields = ("name", "zone__name")


@admin.register(LoginAttempts)
class LoginAttemptsAdmin(ReadOnly):
    list_display = ("subject", "attempts", "started_at")
    search_fields = ("subject",)


@admin.register(Quota)
class QuotaAdmin(ReadOnly):
    list_display = ("zone", "client", "kind", "value", "reached_at")
    list_filter = ("kind",)
    list_select_related = ("zone", "client")
