"""A machine with another secret key or archive than the members that run is refused."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from msgspec.structs import replace

from eventhub.base import limits
from eventhub.base.env import Env
from eventhub.monitoring.shared_settings import SQL, OtherSettings, digests_of, require_shared
from tests.databases import migrated_database

OURS = Env(secret_key="k" * 40, archive_url="s3://archive/a")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with migrated_database("settings") as found:
        yield found


@contextmanager
def member(url: str, env: Env, *, beats: bool = True) -> Iterator[None]:
    """Run a member with these settings; without `beats` it is killed after its first heartbeat."""
    values: dict[str, Any] = {"id": uuid4(), "kind": "web", "node": "east", "pid": 7}
    values |= {"version": "1", "age_s": 1.0}
    values["settings"] = json.dumps(digests_of(env))
    over = threading.Event()
    with psycopg.connect(url, autocommit=True) as session:
        session.execute(SQL["heartbeat"], values)

        def beat() -> None:
            while beats and not over.wait(0.05):
                session.execute(SQL["heartbeat"], values)

        thread = threading.Thread(target=beat)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            session.execute(SQL["leave"], {"id": values["id"]})


def check(url: str, env: Env) -> None:
    with psycopg.connect(url, autocommit=True) as session:
        require_shared(session, env)


@pytest.mark.parametrize(
    ("theirs", "name"),
    [
        (replace(OURS, secret_key="l" * 40), "EVENTHUB_SECRET_KEY"),
        (replace(OURS, archive_url="/srv/hub/archive"), "EVENTHUB_ARCHIVE_URL"),
    ],
)
def test_a_running_member_with_other_settings_is_named(url: str, theirs: Env, name: str) -> None:
    with member(url, theirs), pytest.raises(OtherSettings, match=f"web process .* east .*{name}"):
        check(url, OURS)


def test_members_with_the_same_settings_and_former_keys_are_accepted(url: str) -> None:
    former = replace(OURS, secret_key="l" * 40)
    with member(url, OURS), member(url, former):
        check(url, replace(OURS, secret_key_fallbacks=("l" * 40,)))


def test_a_setting_that_a_process_does_not_have_is_no_difference(url: str) -> None:
    with member(url, Env()), member(url, OURS):
        check(url, OURS)
        check(url, Env())


def test_a_killed_member_with_other_settings_does_not_prevent_a_start(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MEMBER_HEARTBEAT_S", 0.3)
    with member(url, replace(OURS, secret_key="l" * 40), beats=False):
        check(url, OURS)
