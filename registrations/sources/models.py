"""The tables of sources, through which third parties emit events by webhooks. Django module."""

from django.contrib.postgres.functions import TransactionNow
from django.db import models
from django.db.models import (
    BigIntegerField,
    BinaryField,
    BooleanField,
    DateTimeField,
    Index,
    IntegerField,
    JSONField,
    OneToOneField,
    TextField,
    UniqueConstraint,
)

from eventhub.access.models import Client, Zone
from eventhub.eventlog.models import Stream
from eventhub.postgresql.tables import Reference


class Source(models.Model):
    """A source of a client: a secret URL to which a provider posts."""

    id = models.BigAutoField(primary_key=True)
    zone = Reference(Zone)
    client = Reference(Client)
    stream = Reference(Stream)
    name = TextField(db_comment="unique among the sources of its client")
    provider = TextField(db_comment="how requests are verified, mapped and answered")
    options = JSONField(db_comment="options of the verification")
    mapping = JSONField(db_comment="where the fields of the event come from")
    enabled = BooleanField(
        db_default=True, db_comment="while it is false, requests are refused with 409"
    )
    token_digest = BinaryField(db_comment="SHA-256 of the token in its URL")
    former_digest = BinaryField(null=True, db_comment="of the token before it")
    former_expires_at = DateTimeField(null=True, db_comment="until then that one is valid too")
    created_at = DateTimeField(db_default=TransactionNow())
    changed_at = DateTimeField(db_default=TransactionNow())

    class Meta:
        db_table = "sources"
        db_table_comment = "sources of events: webhooks of third parties"
        constraints = (
            UniqueConstraint(fields=["client", "name"], name="sources_by_name"),
            UniqueConstraint(fields=["token_digest"], name="sources_by_token"),
            UniqueConstraint(fields=["former_digest"], name="sources_by_former_token"),
        )
        indexes = (
            Index(fields=["zone", "id"], name="sources_listed"),
            Index(fields=["stream"], name="sources_of_stream"),
        )

    def __str__(self) -> str:
        return self.name


class SourceSecret(models.Model):
    """A secret that verifies the requests to a source."""

    id = models.BigAutoField(primary_key=True)
    source = Reference(Source)
    sealed = BinaryField(db_comment="encrypted under EVENTHUB_SECRET_KEY")
    created_at = DateTimeField(db_default=TransactionNow())
    expires_at = DateTimeField(
        null=True, db_comment="until then it is valid; null: the current one"
    )

    class Meta:
        db_table = "source_secrets"
        db_table_comment = "secrets of sources; the database has them encrypted only"
        indexes = (Index(fields=["source"], name="source_secrets_of_source"),)

    def __str__(self) -> str:
        return f"{self.source_id}: {self.id}"


class SourceCount(models.Model):
    """The numbers of requests to a source; apart from it, because each request changes them."""

    source = OneToOneField(Source, models.DO_NOTHING, primary_key=True, db_constraint=False)
    stored = BigIntegerField(db_default=0, db_comment="requests whose events were stored")
    repeated = BigIntegerField(db_default=0, db_comment="requests whose events were stored before")
    answered = BigIntegerField(db_default=0, db_comment="challenges and trials of the provider")
    failed = BigIntegerField(db_default=0, db_comment="verified requests that were not stored")
    refused = BigIntegerField(db_default=0, db_comment="requests that were not verified")
    verified_at = DateTimeField(null=True, db_comment="when a request was verified last")
    refused_at = DateTimeField(null=True, db_comment="when one was refused last")

    class Meta:
        db_table = "source_counts"
        db_table_comment = "numbers of requests to sources"

    def __str__(self) -> str:
        return f"{self.source_id}: {self.stored}"


class SourceSample(models.Model):
    """One of the last requests to a source; the newest take the slots of the oldest."""

    id = models.BigAutoField(primary_key=True)
    source = Reference(Source)
    verified = BooleanField(db_comment="whether the request was verified")
    slot = IntegerField(db_comment="its place among the last ones of its kind")
    received_at = DateTimeField(db_comment="when it came")
    outcome = TextField(db_comment="`stored`, `repeated`, `answered`, `failed` or `refused`")
    reason = TextField(db_comment="why it failed or was refused: a code; else empty")
    detail = TextField(db_comment="the same in words")
    address = TextField(db_comment="the address that it came from")
    sequence = BigIntegerField(null=True, db_comment="of its event in the stream")
    headers = JSONField(db_comment="its headers, without secrets")
    query = TextField(db_comment="its query, without secrets")
    body = BinaryField(null=True, db_comment="the beginning of its body; null: refused")
    body_bytes = IntegerField(db_comment="the length of the whole body")

    class Meta:
        db_table = "source_samples"
        db_table_comment = "the last requests to sources"
        constraints = (
            UniqueConstraint(fields=["source", "verified", "slot"], name="source_samples_slot"),
        )

    def __str__(self) -> str:
        return f"{self.source_id}: {self.outcome}"
