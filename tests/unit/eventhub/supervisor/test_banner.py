"""The commands of the banner, run by a shell as a user would copy them."""

import io
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from eventhub.supervisor import banner
from eventhub.supervisor.datafolder import Folder
from eventhub.supervisor.hub import HOME
from eventhub.supervisor.output import Output
from eventhub.supervisor.postgres import Postgres

URL = "http://[::1]:8000"
PRINT_ARGUMENTS = "#!/bin/sh\nprintf '%s\\n' \"$@\"\n"

odd_names = pytest.mark.parametrize(
    "name", ["plain", "with space", "it's", 'a "quote"', "$HOME `id`", "{braces}", "a\\b;c&d"]
)


@pytest.fixture
def folder(tmp_path: Path, name: str) -> Folder:
    found = Folder(tmp_path / name)
    found.root.mkdir()
    found.credentials.write_text(json.dumps({"client": {"key": "ehk_a_b"}}))
    return found


def printed(folder: Folder) -> str:
    """Return the banner as a terminal shows it."""
    given = {
        "DATABASE_URL": Postgres(folder.postgres, folder.root / "run").url(),
        "EVENTHUB_ARCHIVE_URL": str(folder.archive),
    }
    stream = io.StringIO()
    Output(stream).show(banner.text(URL, folder, given, demo=True))
    return stream.getvalue()


def shell(script: str, path: Path | None = None) -> list[str]:
    search = f"{path}:{os.environ['PATH']}"
    env = {**os.environ, "PATH": search}
    done = subprocess.run(
        ["/bin/sh", "-c", script], cwd=HOME, env=env, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def command(text: str, start: str) -> str:
    """Return the command from `start` to the end of its last continuation line."""
    found = re.search(rf"^ +({re.escape(start)}(?:.*\\\n)*.*)$", text, re.MULTILINE)
    assert found is not None, text
    return found.group(1)


@odd_names
def test_curl_of_the_banner_sends_the_key(folder: Folder, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "curl").write_text(PRINT_ARGUMENTS)
    (programs / "curl").chmod(0o755)
    arguments = shell(command(printed(folder), "curl"), programs)
    assert "Authorization: Bearer ehk_a_b" in arguments
    assert f"{URL}/v1/streams/host/events" in arguments
    assert json.loads(arguments[-1])["domain"] == "demo"


@odd_names
def test_watch_of_the_banner_gets_the_path_of_the_credentials(folder: Folder) -> None:
    line = command(printed(folder), ".venv/bin/python -m eventhub.demo.watch")
    words = shell("printf '%s\\n' " + line)
    assert words[-1] == str(folder.credentials)
    assert words[words.index("--url") + 1] == URL


@odd_names
def test_export_of_the_banner_gives_the_databases_url(folder: Folder) -> None:
    expected = Postgres(folder.postgres, folder.root / "run").url()
    export = command(printed(folder), "export DATABASE_URL=")
    assert shell(f"{export}; printf '%s\\n' \"$DATABASE_URL\"") == [expected]


@odd_names
def test_export_of_the_banner_gives_the_archives_url(folder: Folder) -> None:
    export = command(printed(folder), "export EVENTHUB_ARCHIVE_URL=")
    assert shell(f"{export}; printf '%s\\n' \"$EVENTHUB_ARCHIVE_URL\"") == [str(folder.archive)]


def test_url_of_an_external_database_is_not_printed(tmp_path: Path) -> None:
    """The URL may contain a password, and the operator knows it."""
    assert "DATABASE_URL" not in banner.text(URL, Folder(tmp_path), {}, demo=True)
