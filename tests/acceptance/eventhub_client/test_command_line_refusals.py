"""The command line when something is wrong: statuses, messages that say what to do, where the key
comes from.
"""

import re
import subprocess
from pathlib import Path

import orjson

from tests.acceptance.shell import COMMAND, WAIT_S, Shell
from tests.acceptance.wire import EVENT
from tests.live import LiveZone


class TestWhatGoesWrong:
    """Each with its status, and a message that says what to do."""

    def test_no_hub(self, zone: LiveZone) -> None:
        done = Shell(zone, url="http://127.0.0.1:9").run("listen", "orders")
        assert done.status == 3
        assert "cannot be reached" in done.err

    def test_a_wrong_key(self, zone: LiveZone) -> None:
        done = Shell(zone, key="ehk_wrong").here("replay", "orders")
        assert done.status == 4
        assert "Check the key" in done.err
        assert ".." not in done.err

    def test_no_key(self, zone: LiveZone) -> None:
        shell = Shell(zone)
        del shell.env["EVENTHUB_KEY"]
        done = shell.here("replay", "orders")
        assert done.status == 2
        assert "EVENTHUB_KEY" in done.err

    def test_a_stream_that_is_not_there(self, zone: LiveZone) -> None:
        done = Shell(zone).here("listen", "orders")
        assert done.status == 1
        assert "unknown_stream" in done.err
        assert "with `eventhub streams create STREAM`" in done.err

    def test_a_wrong_event_is_named_by_its_place(self, zone: LiveZone) -> None:
        zone.create_stream("orders")
        lines = orjson.dumps(EVENT).decode() + '\n{"domain": "shop"}'
        done = Shell(zone).here("emit", "orders", stdin=lines)
        assert done.status == 1
        assert "index 1" in done.err

    def test_wrong_use(self, zone: LiveZone) -> None:
        shell = Shell(zone)
        for words in (
            ("listen",),
            ("listen", "orders", "--from", "yesterday"),
            ("listen", "orders", "--from", "2026-11-21T08:00:00"),
            ("listen", "orders", "--attribute", "n"),
            ("listen", "orders", "--mask", "1", "--channel", "a"),
            ("emit", "orders", "{}", "--domain", "d"),
            ("streams", "create", "../x"),  # was sent as another path
            ("streams", "show", ".."),
            ("clients", "show", "a/b"),
        ):
            assert shell.here(*words).status == 2, words

    def test_a_log_that_is_another_one(self, zone: LiveZone) -> None:
        zone.create_stream("orders")
        other = "00000000-0000-4000-8000-000000000000:5"
        done = Shell(zone).here("listen", "orders", "--from", other)
        assert done.status == 5
        assert "--from oldest" in done.err

    def test_a_url_with_a_password_in_it(self, zone: LiveZone) -> None:
        done = Shell(zone, url="http://user:secret@127.0.0.1:9").here("streams", "list")
        assert done.status == 2
        assert one_line(done.err).endswith("use a key instead.")
        assert "secret" not in done.err

    def test_a_key_that_can_be_no_header(self, zone: LiveZone) -> None:
        done = Shell(zone, key="ehk_a_b\r\nX: y").here("streams", "list")
        assert done.status == 2
        assert "not an API key" in one_line(done.err)

    def test_an_output_that_takes_nothing(self, zone: LiveZone) -> None:
        zone.create_stream("orders")
        zone.emit("orders", EVENT)
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                [*COMMAND, "replay", "orders"],
                env=Shell(zone).env,
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                timeout=WAIT_S,
                check=False,
            )
        assert done.returncode == 6
        assert "cannot be written" in one_line(done.stderr)

    def test_a_file_that_is_no_outbox(self, zone: LiveZone, tmp_path: Path) -> None:
        file = tmp_path / "notes.txt"
        file.write_text("this is no database, and long enough to be looked at " * 100)
        for words in (("status",), ("dead-letters",), ("drop", "1")):
            done = Shell(zone).here("outbox", words[0], str(file), *words[1:])
            assert done.status == 1, words
            assert str(file) in one_line(done.err), words


def one_line(text: str) -> str:
    [line] = text.strip().splitlines()
    return line


class TestKeys:
    """The sources of the key, and the permissions of its file."""

    def test_from_a_file_that_only_its_owner_reads(self, zone: LiveZone, tmp_path: Path) -> None:
        zone.create_stream("orders")
        shell = Shell(zone)
        del shell.env["EVENTHUB_KEY"]
        file = tmp_path / "key"
        file.write_text(zone.admin + "\n")
        file.chmod(0o644)
        refused = shell.here("--key-file", str(file), "streams", "list")
        assert refused.status == 2
        assert f"chmod 600 {file}" in refused.err
        file.chmod(0o600)
        assert "orders" in shell.ok_here("--key-file", str(file), "streams", "list").out

    def test_from_a_configuration_file(self, zone: LiveZone, tmp_path: Path) -> None:
        zone.create_stream("orders")
        shell = Shell(zone)
        del shell.env["EVENTHUB_KEY"], shell.env["EVENTHUB_URL"]
        config = tmp_path / "config.toml"
        config.write_text(f'url = "{zone.hub.url}"\nkey = "{zone.admin}"\n')
        config.chmod(0o600)
        assert "orders" in shell.ok_here("--config", str(config), "streams", "list").out
        config.write_text("url = 1\n")
        assert shell.here("--config", str(config), "streams", "list").status == 2

    def test_as_an_option_with_a_warning(self, zone: LiveZone) -> None:
        shell = Shell(zone)
        assert shell.ok_here("streams", "list").err == ""
        del shell.env["EVENTHUB_KEY"]
        done = shell.ok_here("--key", zone.admin, "streams", "list")
        assert "list of processes" in done.err


def test_every_command_has_help_with_an_example(zone: LiveZone) -> None:
    shell = Shell(zone)
    for words in (
        ("emit",),
        ("listen",),
        ("replay",),
        ("relay",),
        ("streams",),
        ("segments",),
        ("state",),
        ("types",),
        ("outbox",),
    ):
        text = shell.ok_here(*words, "--help").out
        assert f"  eventhub {words[0]}" in text, text


def test_help_describes_groups_policies_and_grants(zone: LiveZone) -> None:
    """Groups had the verbs of their commands, and a policy's fields were in the API only."""
    shell = Shell(zone)
    assert re.search("  overview +The figures of a zone", shell.ok_here("--help").out)
    for words, text in (
        (("streams",), r"  events +Events of a stream: show one, and what it matched"),
        (("streams", "events"), r"^  Events of a stream: show one, and what it matched"),
        (("streams", "create"), r"  retain_age_s +The time after sealing"),
        (("streams", "set"), r"  retain_age_s +The time after sealing"),
        (("connection-tokens", "create"), r"--grants JSON +A list such as"),
        (("connection-tokens", "create"), r"--lifetime-s INTEGER +The seconds for which"),
    ):
        shown = shell.ok_here(*words, "--help").out
        assert re.search(text, shown, re.MULTILINE), shown
