"""The whole hub with its demo, as by `make run`: it continues after each way of stopping, and
the commands of the documents work, run as a user would copy them."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from eventhub_client.remote import HubClient
from eventhub_client.types import Cursor, Delivered

from eventhub.base import limits
from tests.acceptance.whole_hub import FEW
from tests.integration.up_process import EMBEDDED_VARIABLES, HOME, Hub

FIRST_EVENT_PATIENCE_S = 60.0
SCRIPT_S_MAX = 250.0  # the tutorial starts the command line thirty times, beside other tests
ONE_OF_EACH = ("--web", "1", "--forwarders", "1", "--workers", "1")
PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
TUTORIAL = re.compile(r"^## (.*?)$|^```(sh|text)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def credentials(hub: Hub) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = json.loads((hub.data / "credentials.json").read_text())
    return found


async def next_event(hub: Hub, start: Cursor | str) -> Delivered:
    async with HubClient(hub.url, credentials(hub)["client"]["key"]) as client:
        async for delivered in client.listen("host", start=start):  # type: ignore[arg-type]
            return delivered
    raise AssertionError("the listener ended")


def first_event(hub: Hub, start: Cursor | str = "now") -> Delivered:
    return asyncio.run(asyncio.wait_for(next_event(hub, start), FIRST_EVENT_PATIENCE_S))


@contextmanager
def demo_hub(root: Path, ended_by: int, *words: str) -> Iterator[Hub]:
    """Run a hub until a signal; afterwards no process of it may be left."""
    hub = Hub(root / "var", "--demo", *words, script=HOME / "manage.py")
    try:
        yield hub.wait_ready()
    finally:
        hub.process.send_signal(ended_by)
        hub.wait_end(limits.STOP_TIMEOUT_S_MAX)
        hub.wait_gone()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder like the root of a checkout, with .venv, manage.py and var."""
    root = tmp_path_factory.mktemp("docs")
    (root / ".venv").symlink_to(sys.prefix)
    (root / "manage.py").symlink_to(HOME / "manage.py")
    (root / ".curlrc").write_text("fail-with-body\nsilent\n")
    return root


class FirstRun(NamedTuple):
    """An event and the credentials of the hub's first run."""

    event: Delivered
    logins: dict[str, dict[str, str]]

    def continues(self, hub: Hub) -> bool:
        first_event(hub)  # a new one: the demo has read or created its credentials
        after = first_event(hub, Cursor(self.event.segment, self.event.sequence))
        return credentials(hub) == self.logins and after.sequence == self.event.sequence + 1


@pytest.fixture(scope="module")
def before(root: Path) -> FirstRun:
    """Run the hub for the first time, ended by Ctrl-C."""
    with demo_hub(root, signal.SIGINT, *ONE_OF_EACH) as hub:
        event = first_event(hub)
        logins = credentials(hub)
        assert (hub.data / "credentials.json").stat().st_mode & 0o777 == 0o600
    assert hub.process.returncode == 0
    return FirstRun(event, logins)


@pytest.fixture(scope="module")
def killed(root: Path, before: FirstRun) -> bool:
    """Return whether the second run continued the first; it is ended by SIGKILL."""
    with demo_hub(root, signal.SIGKILL, *FEW) as hub:
        return before.continues(hub)


@pytest.fixture(scope="module")
def hub(root: Path, killed: bool) -> Iterator[Hub]:
    """Run the hub for the third time."""
    with demo_hub(root, signal.SIGINT, *ONE_OF_EACH) as hub:
        yield hub
    assert hub.process.returncode == 0


def run(hub: Hub, script: str) -> str:
    """Run a script in a shell without the hub's variables; a failing command or request ends it."""
    inherited = {k: v for k, v in os.environ.items() if k not in EMBEDDED_VARIABLES}
    home = str(hub.data.parent)
    done = subprocess.run(
        ["/bin/bash", "-euo", "pipefail", "-c", script.replace("http://127.0.0.1:8000", hub.url)],
        cwd=home,
        env={**inherited, "no_proxy": "*", **dict.fromkeys(("CURL_HOME", "TMPDIR"), home)},
        capture_output=True,
        text=True,
        check=False,
        timeout=SCRIPT_S_MAX,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def commands(page: str, about: str = "") -> str:
    """Return the commands of a document in their order; only blocks that contain `about`."""
    blocks = BLOCK.findall((HOME / "docs" / page).read_text())
    found = [block for block in blocks if about in block]
    assert found
    return "".join(found)


class Step(NamedTuple):
    """Commands of the tutorial, and the output that it shows for them; `…` stands for any text."""

    section: str
    commands: str
    shown: list[str]

    def require_shown(self, output: str) -> None:
        for text in self.shown:
            pattern = re.escape(text).replace("…", ".*")
            assert re.search(f"^{pattern}", output, re.MULTILINE), f"{text}is not in:\n{output}"


def tutorial() -> list[Step]:
    section, steps = "", []
    for heading, kind, text in TUTORIAL.findall((HOME / "docs/tutorial.md").read_text()):
        section = heading or section
        if kind == "sh":
            steps.append(Step(section, text, []))
        elif kind and steps:
            steps[-1].shown.append(text)
    return steps


def test_commands_of_the_tutorial_print_what_it_shows(hub: Hub) -> None:
    steps = tutorial()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    script = "".join(f"{step.commands}echo; echo @@ $EPOCHREALTIME\n" for step in steps)
    started_s = time.time()
    *found, rest = re.split("@@ (.*)\n", run(hub, script.replace("9000", port)))
    assert rest == ""
    ended_s: dict[str, list[float]] = {}
    for step, output, at_s in zip(steps, found[::2], found[1::2], strict=True):
        step.require_shown(output)
        if step.shown:
            ended_s.setdefault(step.section, []).append(float(at_s) - started_s)
    print(
        f"from the start of the tutorial: first event {ended_s['Emit an event'][0]:.1f} s,"
        f" first verified webhook {ended_s['Verify a webhook'][0]:.1f} s,"
        f" first resume {ended_s['Resume after a loss'][-1]:.1f} s"
    )


LOOPBACK_OF_ANOTHER_ZONE = """
export EVENTHUB_URL=http://127.0.0.1:8000 HOME=$PWD
export EVENTHUB_PASSWORD=$(.venv/bin/python -c \
'import json; print(json.load(open("var/credentials.json"))["operator"]["password"])')
.venv/bin/eventhub login operator
.venv/bin/eventhub zones create --name neighbour
.venv/bin/eventhub clients create --zone neighbour --name shop
.venv/bin/eventhub endpoints create --zone neighbour --client shop --url http://127.0.0.1:9/ 2>&1 \
&& exit 1
.venv/bin/eventhub endpoints create --client demo --url http://localhost:9/
"""


def test_only_the_demos_zone_may_call_loopback(hub: Hub) -> None:
    output = run(hub, LOOPBACK_OF_ANOTHER_ZONE)
    assert "refused_address" in output
    assert "adds `ZONE=ADDRESS` to EVENTHUB_CALLBACK_ALLOW" in output
    assert "whsec_" in output
    assert "callbacks       of the demo's zone default may go to this machine" in hub.text


def test_demo_emits_and_continues_after_each_way_of_stopping(
    hub: Hub, before: FirstRun, killed: bool
) -> None:
    assert before.event.event["domain"] == "host"
    assert killed
    assert before.continues(hub)


def test_every_command_of_the_page_about_access_works(hub: Hub) -> None:
    """The first one did not find manage.py, and others used variables that were not set."""
    output = run(hub, commands("access.md"))
    assert "ehk_" in output
    assert '"plant"' in output


def test_the_python_of_the_readme_works(hub: Hub) -> None:
    """The example did not run, and listened to another domain than it emitted."""
    [script] = PYTHON.findall((HOME / "README.md").read_text())
    script = script.replace("http://127.0.0.1:8000", hub.url)
    running = subprocess.Popen(
        [".venv/bin/python", "-u", "-c", script],
        cwd=hub.data.parent,
        stdout=subprocess.PIPE,
        text=True,
    )
    with running:
        assert running.stdout is not None
        emitted, listened = running.stdout.readline(), running.stdout.readline()
        running.send_signal(signal.SIGINT)
    assert running.returncode == 0
    assert emitted.startswith("emitted ")
    assert listened == f"{emitted.strip().rpartition(':')[2]} order.placed\n"


def test_every_command_of_the_page_about_the_api_works(hub: Hub) -> None:
    assert '"ranges"' in run(hub, commands("api.md"))


def test_every_command_of_the_page_about_registrations_works(hub: Hub) -> None:
    output = run(hub, commands("registrations.md"))
    # read, created, two more, one with a signature, changed, suspended, resumed, in a group, its
    # list, and seven listed
    assert output.count('"from"') == 17
    assert '"done":true,"through":4,"created":2,"changed":1,"ended":0,"repeated":0' in output
    assert output.count("whsec_") == 1  # stored in the shell, and printed by it


def test_every_command_of_the_page_about_explanations_works(hub: Hub) -> None:
    output = run(hub, commands("explain.md"))
    assert '"variable":"Ev1"' in output
    assert "must not hold, but does: size exists" in output
    assert '"name":"from","held":false' in output
    assert output.count('"stopped":"end"') == 2
    assert '{"op":"end"' in output


def test_every_command_of_the_page_about_endpoints_works(hub: Hub) -> None:
    output = run(hub, commands("endpoints.md"))
    assert output.count("whsec_") == 3, "of the endpoint and of its two rotations, each shown once"
    assert output.count('"reason":"request"') == 1


def test_backups_of_the_page_about_them_work(hub: Hub) -> None:
    run(hub, commands("backup.md", "-D base -c fast"))
    run(hub, commands("backup.md", "manage.py backup"))
    assert (hub.data.parent / "hub.dump").stat().st_size > 0
    assert (hub.data.parent / "base" / "PG_VERSION").exists()


def test_url_of_the_page_about_operations_is_right(hub: Hub) -> None:
    export = commands("operations.md", "export DATABASE_URL=").splitlines()[0]
    assert "ehk_" in run(hub, f"{export}\n.venv/bin/python manage.py createkey anybody\n")


def test_the_token_of_an_operator_created_beside_the_hub_is_accepted(hub: Hub) -> None:
    """The command signed it with another key than the hub's, whose file it did not read."""
    export = commands("operations.md", "export DATABASE_URL=").splitlines()[0]
    assert '"role":"viewer"' in run(hub, f"{export}\n{SET_UP}")


def test_no_page_names_manage_py_in_a_block_without_its_interpreter() -> None:
    for page in (HOME / "README.md", *(HOME / "docs").glob("*.md")):
        for block in BLOCK.findall(page.read_text()):
            assert not re.search(r"(?<!\.venv/bin/python )manage\.py", block), page


SET_UP = """
BODY='{"username": "alice", "setup_token": "%s", "password": "four odd words"}'
export EVENTHUB_DATA=$PWD/var
TOKEN=$(.venv/bin/python manage.py createoperator alice --role viewer)
printf "$BODY" "$TOKEN" | curl http://127.0.0.1:8000/v1/session/setup --json @-
"""
SENT = """
KEY=$(.venv/bin/python -c \
'import json; print(json.load(open("var/credentials.json"))["client"]["key"])')
curl http://127.0.0.1:8000/v1/streams/host/events -H "Authorization: Bearer $KEY" --json '%s' \
| .venv/bin/python -c 'import json, sys; print(json.load(sys.stdin)["ranges"][0]["first"])' > at
curl "http://127.0.0.1:8000/v1/streams/host/events/$(cat at)" -H "Authorization: Bearer $KEY"
"""


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ('"body": {"a": 1, "a": 2.50}', {"body": {"a": 2.5}}),
        ('"body": 0.10000000000000000555', {"body": 0.1}),
        ('"body": 18446744073709551615', {"body": 2**64 - 1}),
        ('"body": 1, "body": 2', {"body": 2}),
        ('"type": "first", "type": "last"', {"type": "last"}),
        (
            '"body_base64": "eyJhIjogMi41MH0=", "content_type": "text/json"',
            {"body_base64": "eyJhIjogMi41MH0="},
        ),
    ],
)
def test_bodies_are_delivered_as_the_page_about_events_describes(
    hub: Hub, sent: str, shown: dict[str, Any]
) -> None:
    output = run(hub, SENT % f'{{"domain": "d", "type": "t", {sent}}}')
    event = json.loads(output)
    assert {name: event[name] for name in shown} == shown
