"""Reads the hub's settings from the environment, and from the file that EVENTHUB_SETTINGS_FILE
names. eventhub/base/config.py has which there are. `manage.py up` fills in what it starts itself
(DATABASE_URL, REDIS_URL, EVENTHUB_SECRET_KEY). What cannot be read is refused, never taken for
something else. Plain module.
"""

import difflib
import functools
import os
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn

from msgspec.structs import replace

from eventhub.base.config import KINDS, SETTINGS
from eventhub.base.config import Env as Env  # what most of those who read settings name besides
from eventhub.base.setting import written

PREFIX = "EVENTHUB_"
FILE = "EVENTHUB_SETTINGS_FILE"
# of the command-line client (docs/cli.md), which may run in the same environment
OF_THE_CLIENT = frozenset(
    {"EVENTHUB_CONFIG", "EVENTHUB_FORWARD_SECRET", "EVENTHUB_KEY", "EVENTHUB_KEY_FILE"}
    | {"EVENTHUB_SEGMENT", "EVENTHUB_SEQUENCE", "EVENTHUB_STREAM", "EVENTHUB_URL"}
)
MISSPELT_LIKENESS_MIN = 0.8  # of two names, from 0 to 1: one letter less or more, or two exchanged
_NAMES = frozenset(setting.variable for setting in SETTINGS.values()) | {FILE}

Origin = Literal["environment", "file", "default"]
Given = tuple[Origin, str, object]  # from where, how that is called in a mistake, and what


class BadSettings(Exception):
    """Settings that cannot be read; the message has a line for each, with what to write."""


class Loaded(NamedTuple):
    """What was read, and where from."""

    env: Env
    origins: Mapping[str, Origin]  # of each field
    file: str  # its path; "": none


def read_env() -> Env:
    """Return the settings as they are now. What is missing shows when it is first needed. Raises
    BadSettings."""
    return load().env


def load() -> Loaded:
    """Read the environment, which wins, and the file. Raises BadSettings."""
    wrong = [*_misspelt(os.environ)]
    path = os.environ.get(FILE, "")
    file: Mapping[str, object] = {}
    try:
        file = _read_file(path) if path else {}
    except BadSettings as error:
        wrong.append(str(error))
    wrong += _unknown_in(path, file)
    found: dict[str, Any] = {}
    origins: dict[str, Origin] = dict.fromkeys(SETTINGS, "default")
    for name, setting in SETTINGS.items():
        in_file: Given = ("file", f"{path}: {name}", file.get(name))
        given: Given = ("environment", setting.variable, os.environ.get(setting.variable))
        for origin, place, value in (in_file, given):  # the last one counts, both are checked
            if value is None or setting.is_unset(value):
                continue
            origins[name] = origin
            try:
                found[name] = setting.value_of(value, KINDS[name])
            except ValueError as error:
                wrong.append(f"{place}: {error}")
    if wrong:
        raise BadSettings("\n".join(wrong))
    return Loaded(_completed(Env(**found)), origins, path)


def _completed(env: Env) -> Env:
    """Fill in what follows from other settings and from the machine."""
    cores = len(os.sched_getaffinity(0))
    return replace(
        env,
        database_direct_url=env.database_direct_url or env.database_url,
        mark_url=env.mark_url or env.redis_url,
        spark_master=env.spark_master or f"local[{cores}]",
    )


@functools.cache
def _read_file(path: str) -> Mapping[str, object]:
    """Read once in a process: who changes the file means the next start. Raises BadSettings."""
    try:
        content = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise BadSettings(f"{FILE}: {path} cannot be read: {why}") from error
    try:
        return tomllib.loads(content.decode() + "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BadSettings(f"{path}: not UTF-8 (at line {line})") from error
    except (ValueError, RecursionError) as error:  # tomllib says the line and the column
        raise BadSettings(f"{path}: not TOML: {error}") from error


def move_file_into_environment() -> None:
    """Set the variables that the file sets, in place of the file: the processes that this one
    starts go on with what was read now, also if the file changes or their user may not read it."""
    loaded = load()
    for name, setting in SETTINGS.items():
        if loaded.origins[name] == "file":
            os.environ[setting.variable] = written(getattr(loaded.env, name))
    os.environ.pop(FILE, None)


def require_env() -> Env:
    """The same for a program that starts: settings that cannot be read end it, with a line for
    each and the status that says that another try would not help."""
    try:
        return read_env()
    except BadSettings as error:
        refuse(f"{error}\nSee docs/settings.md.")


def refuse(message: str) -> NoReturn:
    """End this program, which can never run as it is set or with its data: EX_CONFIG tells whoever
    looks after it (`manage.py up`, systemd's RestartPreventExitStatus) not to try again."""
    sys.stderr.write(f"{message}\n")
    sys.exit(os.EX_CONFIG)


def unknown_names(names: Iterable[str]) -> list[str]:
    """Return those that look like settings and are none, neither of the hub nor of its client.
    Others may have made them: Kubernetes describes a service `eventhub` by EVENTHUB_PORT."""
    known = _NAMES | OF_THE_CLIENT
    return sorted(name for name in names if name.startswith(PREFIX) and name not in known)


def _misspelt(names: Iterable[str]) -> Iterable[str]:
    """Say of each unknown variable that is nearly a known one, or the beginning of one, what it may
    have been meant for."""
    meant = {name.removeprefix(PREFIX): name for name in (_NAMES | OF_THE_CLIENT)}
    for name in unknown_names(names):
        if close := _closest(name.removeprefix(PREFIX), meant):
            yield f"{name} is no setting of the hub; did you mean {meant[close]}?"


def _unknown_in(path: str, file: Mapping[str, object]) -> Iterable[str]:
    """Refuse every unknown name in the file, which is the hub's alone."""
    for name in sorted(file.keys() - SETTINGS.keys()):
        close = _closest(name.lower().removeprefix(PREFIX.lower()), SETTINGS)
        hint = f"did you mean {close}?" if close else "docs/settings.md has their names"
        yield f"{path}: {name} is no setting of the hub; {hint}"


def _closest(name: str, known: Iterable[str]) -> str | None:
    for one in known:
        if one.startswith(f"{name}_"):
            return one
    close = difflib.get_close_matches(name, known, n=1, cutoff=MISSPELT_LIKENESS_MIN)
    return close[0] if close else None
