"""The tables of zones and credentials: a zone owns clients and channel names, a client owns keys.
Django module.

Operators are Django users.
"""

from django.db import models

from eventhub.access.quotas import KINDS
from eventhub.base import limits
from eventhub.postgresql.tables import TableStorage


class Zone(models.Model):
    """A tenant. No data crosses zones."""

    # for ever: events of `system` name the zone, and a new one of the name would see them
    name = models.CharField(max_length=limits.NAME_CHARS_MAX, unique=True)
    deletes_at = models.DateTimeField(null=True)  # end of the grace period of its deletion, if any
    deleted_at = models.DateTimeField(null=True)
    erased_at = models.DateTimeField(null=True)  # when the last of its data was removed
    presence = models.BooleanField(
        db_default=False,
        db_comment="whether its clients that connect and disconnect are events",
    )
    traces = models.BooleanField(db_default=False, db_comment="whether its API calls are events")

    class Meta:
        db_table = "zones"

    def __str__(self) -> str:
        return self.name


class Client(models.Model):
    """A client of a zone; the events that it emits carry its name (`source`)."""

    zone = models.ForeignKey(Zone, models.PROTECT)
    name = models.CharField(max_length=limits.NAME_CHARS_MAX)
    # names, ascending, each once: see audience.py
    groups = models.JSONField(default=list, db_default=models.Value([], models.JSONField()))
    created_at = models.DateTimeField(auto_now_add=True)
    deleted_at = models.DateTimeField(null=True)  # from then on its name may be reused

    class Meta:
        db_table = "clients"
        constraints = (
            models.UniqueConstraint(
                fields=["zone", "name"],
                condition=models.Q(deleted_at__isnull=True),
                name="clients_by_name",
            ),
        )

    def __str__(self) -> str:
        return self.name


class ApiKey(models.Model):
    """A key of a client: the digest of its text, and its grants."""

    client = models.ForeignKey(Client, models.PROTECT)
    public_id = models.CharField(max_length=12, unique=True)
    digest = models.BinaryField(unique=True)  # sha256 of the whole text
    label = models.CharField(max_length=limits.NAME_CHARS_MAX, blank=True)
    grants = models.JSONField(default=list)  # [{"action": ..., "streams": ...}], see grants.py
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    allowed_addresses = models.JSONField(
        null=True,
        db_comment="addresses and networks that it may be used from; null: every one",
    )

    class Meta:
        db_table = "api_keys"
        verbose_name = "API key"

    def __str__(self) -> str:
        return self.public_id


class Channel(models.Model):
    """A name for one bit of the 64-bit mask (EMC-19); bit 63 is `default` and has no row."""

    zone = models.ForeignKey(Zone, models.PROTECT)
    name = models.CharField(max_length=limits.NAME_CHARS_MAX)
    bit = models.SmallIntegerField()
    deletes_at = models.DateTimeField(null=True)  # end of the grace period of its deletion, if any
    # from then on no event can name it; the row keeps the bit for stored events that carry it
    deleted_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "channels"
        constraints = (
            models.UniqueConstraint(fields=["zone", "name"], name="channels_by_name"),
            models.UniqueConstraint(fields=["zone", "bit"], name="channels_by_bit"),
            models.CheckConstraint(
                condition=models.Q(bit__gte=0, bit__lte=62), name="channels_bit_range"
            ),
        )

    def __str__(self) -> str:
        return self.name


class Quota(models.Model):
    """A quota that an operator set for a zone or a client (quotas.py)."""

    zone = models.ForeignKey(Zone, models.PROTECT)
    client = models.ForeignKey(Client, models.PROTECT, null=True)  # null: of the zone as a whole
    kind = models.TextField(choices=[(kind, kind) for kind in KINDS])
    value = models.BigIntegerField()
    reached_at = models.DateTimeField(
        null=True, db_comment="since when it is used up; null: it is not, or nobody looks"
    )

    class Meta:
        db_table = "quotas"
        constraints = (
            models.UniqueConstraint(
                fields=["zone", "client", "kind"], nulls_distinct=False, name="quotas_by_kind"
            ),
            models.CheckConstraint(
                condition=models.Q(kind__in=[*KINDS]),
                name="quotas_kind",
            ),
        )

    def __str__(self) -> str:
        return f"{self.kind}: {self.value}"


class RateBucket(models.Model):
    """The token bucket of a quota of events per second. A crash of the database empties the table,
    and so fills the buckets.
    """

    pk = models.CompositePrimaryKey("zone_id", "client_id")
    zone_id = models.BigIntegerField()
    client_id = models.BigIntegerField()  # 0: of the zone as a whole
    tokens = models.FloatField()  # below 0: a request was larger than what was left
    refilled_at = models.DateTimeField()

    storage = TableStorage(unlogged=True, parameters={"fillfactor": 50})

    class Meta:
        db_table = "rate_buckets"

    def __str__(self) -> str:
        return f"{self.zone_id}.{self.client_id}: {self.tokens}"


class LoginAttempts(models.Model):
    """The number of login attempts of an address or username in the current window."""

    subject = models.CharField(max_length=300, primary_key=True)  # user:NAME or address:ADDRESS
    started_at = models.DateTimeField(db_index=True)
    attempts = models.IntegerField()

    class Meta:
        db_table = "login_attempts"
        verbose_name = verbose_name_plural = "login attempts"

    def __str__(self) -> str:
        return self.subject
