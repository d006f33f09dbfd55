"""`manage.py` without a hub: commands that need its database report that in one line, at once."""

import os
from pathlib import Path

import pytest
from django.core.management import call_command

from tests.forked import manage


@pytest.mark.parametrize(
    "command", ["changepassword", "createsuperuser", "migrate", "createkey", "createoperator"]
)
def test_a_command_without_database_url_names_the_setting(command: str) -> None:
    env = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    arguments = ["shop"] if command in ("createkey", "createoperator") else []
    done = manage(env, command, *arguments)
    assert done.returncode == 1
    assert "DATABASE_URL is not set" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_an_operator_is_not_created_without_the_key_of_the_hub(tmp_path: Path) -> None:
    """The hub would refuse its token."""
    env = {name: value for name, value in os.environ.items() if name != "EVENTHUB_SECRET_KEY"}
    nowhere = {
        "DATABASE_URL": f"postgresql:///?host={tmp_path}",
        "EVENTHUB_DATA": str(tmp_path),
    }
    done = manage({**env, **nowhere}, "createoperator", "alice")
    assert done.returncode == 1
    assert "EVENTHUB_SECRET_KEY is not set" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("action", ["run", "verify"])
def test_the_archive_of_a_hub_must_be_set(action: str) -> None:
    """Another folder than the hub's would be another archive."""
    env = {name: value for name, value in os.environ.items() if name != "EVENTHUB_ARCHIVE_URL"}
    done = manage(env, "archive", action)
    assert done.returncode == 1
    assert "export EVENTHUB_ARCHIVE_URL=" in done.stderr


def test_djangos_checks_find_nothing() -> None:
    """The hub's commands skip the checks: they load every page, a fifth of a forwarder's start."""
    call_command("check", fail_level="WARNING")
