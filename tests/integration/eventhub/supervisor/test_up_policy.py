"""Decisions of the supervisor without starting anything: restarts, output, users."""

import errno
import io
import os
import pwd
from pathlib import Path

import pytest

from eventhub.supervisor import datafolder, users
from eventhub.supervisor.datafolder import Folder, open_folder
from eventhub.supervisor.hub import HOME
from eventhub.supervisor.output import Output
from eventhub.supervisor.restarts import DELAYS_S, decide
from eventhub.supervisor.users import NoIdentity

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root steps down")


@pytest.mark.parametrize(
    ("restarts_at", "row_max", "delay_s"),
    [
        ([], 5, DELAYS_S[0]),
        ([99.0], 5, DELAYS_S[1]),
        ([98.0, 99.0], 5, DELAYS_S[2]),
        ([89.0, 90.0], 5, DELAYS_S[0]),  # it ran for ten seconds since
        ([81.0, 90.1, 99.0], 5, DELAYS_S[3]),  # and here never
        ([95.0, 96.0, 97.0, 98.0], 5, DELAYS_S[4]),
        ([95.0, 96.0, 97.0, 98.0, 99.0], 5, None),
        ([80.0, 95.0, 96.0, 97.0, 98.0], 5, DELAYS_S[4]),
        ([99.0] * 99, None, DELAYS_S[-1]),  # without a limit, with the longest pause
        ([], 0, None),
    ],
)
def test_restarts_back_off_up_to_their_limit(
    restarts_at: list[float], row_max: int | None, delay_s: float | None
) -> None:
    assert decide(restarts_at, 100.0, row_max).delay_s == delay_s


def test_output_is_prefixed_and_plain_when_it_is_no_terminal() -> None:
    stream = io.StringIO()
    output = Output(stream)
    output.line("web-1", "hello")
    output.say("two\nlines")
    assert stream.getvalue() == "web-1     | hello\nhub       | two\nhub       | lines\n"


def test_output_survives_a_closed_terminal() -> None:
    stream = io.StringIO()
    output = Output(stream)
    stream.close()
    output.line("web-1", "no terminal")


class Full(io.StringIO):
    """A log on a disk that is full for a while."""

    full = False

    def write(self, text: str) -> int:
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(text)


def test_failing_log_leaves_the_reason_on_standard_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The hub ended on an I/O error of its disk, without a readable reason."""
    stream = Full()
    output = Output(stream)
    stream.full = True
    output.line("web-1", "hello")
    output.say("postgres cannot be started")
    stream.full = False
    output.say("stopped")
    assert capsys.readouterr().err == "hub: postgres cannot be started\n"
    assert stream.getvalue().splitlines() == [
        "hub       | 2 lines before this one were lost",
        "hub       | stopped",
    ]


def test_folder_of_another_user_is_not_used_for_sockets(tmp_path: Path) -> None:
    """Another user may have created the predictable name under /tmp first."""
    folder = Folder(tmp_path / ("long" * 30))
    owner = (os.geteuid(), os.getegid())
    expected = datafolder.socket_folder(folder, owner)
    expected.chmod(0o755)
    other = datafolder.socket_folder(folder, owner)
    try:
        assert other != expected
        assert other.stat().st_mode & 0o777 == 0o700
    finally:
        expected.rmdir()
        other.rmdir()


def test_change_of_owner_skips_files_with_names_elsewhere(tmp_path: Path) -> None:
    """A file with a second name outside of the data folder retains its owner."""
    folder = open_folder(tmp_path / "data")
    outside = tmp_path / "outside"
    outside.write_text("not part of the data")
    (folder.root / "second_name").hardlink_to(outside)
    (folder.root / "link").symlink_to(outside)
    datafolder.give(folder.root, (os.geteuid(), os.getegid()))
    assert outside.stat().st_uid == os.geteuid()


@as_root
def test_the_owner_of_the_data_then_eventhub_then_nobody_are_tried(tmp_path: Path) -> None:
    folder = open_folder(tmp_path / "data")
    someone = next(entry for entry in pwd.getpwall() if entry.pw_uid not in (0, 65534))
    os.chown(folder.root, someone.pw_uid, someone.pw_gid)
    tried = [found.uid for found in users._users(folder)]
    assert tried[0] == someone.pw_uid
    assert tried[-1] == pwd.getpwnam("nobody").pw_uid


@as_root
def test_without_user_namespaces_the_hub_stops_with_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only root can enter the folder above the data, and namespaces are refused."""
    tmp_path.chmod(0o700)
    folder = open_folder(tmp_path / "data")
    monkeypatch.setattr(users, "_namespace", lambda: ())
    with pytest.raises(NoIdentity, match="make run DATA=/"):
        users.choose(folder, HOME)
    assert folder.root.stat().st_uid == 0


@as_root
def test_folder_that_only_root_reaches_is_served_in_a_namespace(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    found = users.choose(open_folder(tmp_path / "data"), HOME)
    assert found.kind == "namespace"
    assert found.owner == (0, 0)
