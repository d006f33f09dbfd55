"""The hub's settings, read from the environment and from the file that EVENTHUB_SETTINGS_FILE
names; eventhub/base/config.py defines them. `manage.py up` sets those of the servers that it starts
(DATABASE_URL, REDIS_URL, EVENTHUB_SECRET_KEY). Invalid settings are refused, never guessed. Plain
module.
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
from eventhub.base.config import Env as Env  # most readers of settings need it too
from eventhub.base.setting import as_variable

PREFIX = "EVENTHUB_"
FILE = "EVENTHUB_SETTINGS_FILE"
# of the command-line client (docs/cli.md), which may run in the same environment
CLIENT_VARIABLES = frozenset(
    {"EVENTHUB_CONFIG", "EVENTHUB_FORWARD_SECRET", "EVENTHUB_KEY", "EVENTHUB_KEY_FILE"}
    | {"EVENTHUB_SEGMENT", "EVENTHUB_SEQUENCE", "EVENTHUB_STREAM", "EVENTHUB_URL"}
)
# what the variables of its tests and benchmarks begin with
_DEVELOPMENT = ("EVENTHUB_BENCH_", "EVENTHUB_CHAOS_")
# similarity of two names, from 0 to 1: one letter less or more, or two exchanged
MISSPELT_LIKENESS_MIN = 0.8
_NAMES = frozenset(setting.variable for setting in SETTINGS.values()) | {FILE}

Origin = Literal["environment", "file", "default"]
Given = tuple[Origin, str, object]  # the origin, its name in an error, the value


class BadSettings(Exception):
    """Settings are invalid; the message has a line for each, with what to write."""


class LoadedSettings(NamedTuple):
    """The settings, and where each was read from."""

    env: Env
    origins: Mapping[str, Origin]  # of each field
    file: str  # its path; "": none


def read_env() -> Env:
    """Return the current settings. A missing one is noticed when it is first needed. Raises
    BadSettings.
    """
    return load().env


def load() -> LoadedSettings:
    """Read the environment, which takes precedence, and the file. Raises BadSettings."""
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
        for origin, source, value in (in_file, given):  # the last one wins, both are checked
            if value is None or setting.is_unset(value):
                continue
            origins[name] = origin
            try:
                found[name] = setting.value_of(value, KINDS[name])
            except ValueError as error:
                wrong.append(f"{source}: {error}")
    if wrong:
        raise BadSettings("\n".join(wrong))
    return LoadedSettings(_completed(Env(**found)), origins, path)


def _completed(env: Env) -> Env:
    """Fill in defaults that depend on other settings or on the machine."""
    cores = len(os.sched_getaffinity(0))
    return replace(
        env,
        database_direct_url=env.database_direct_url or env.database_url,
        mark_url=env.mark_url or env.redis_url,
        spark_master=env.spark_master or f"local[{cores}]",
    )


@functools.cache
def _read_file(path: str) -> Mapping[str, object]:
    """Read the file once in a process: a change takes effect at the next start. Raises
    BadSettings.
    """
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
    except (ValueError, RecursionError) as error:  # tomllib's message has the line and the column
        raise BadSettings(f"{path}: not TOML: {error}") from error


def forget_file() -> None:
    """Read the file again when it is next needed: a forked process starts."""
    _read_file.cache_clear()


def move_file_into_environment() -> None:
    """Replace the file by variables, so that the processes that this one starts use the settings
    read now, even if the file changes or their user may not read it.
    """
    loaded = load()
    for name, setting in SETTINGS.items():
        if loaded.origins[name] == "file":
            os.environ[setting.variable] = as_variable(getattr(loaded.env, name))
    os.environ.pop(FILE, None)


def require_env() -> Env:
    """Return the settings for a program that starts. Invalid ones end it, with a line for each and
    the exit status of `refuse`.
    """
    try:
        return read_env()
    except BadSettings as error:
        refuse(f"{error}\nSee docs/settings.md.")


def refuse(message: str) -> NoReturn:
    """End this program, which cannot run with its settings or its data. The exit status EX_CONFIG
    tells its supervisor (`manage.py up`, systemd's RestartPreventExitStatus) not to restart it.
    """
    sys.stderr.write(f"{message}\n")
    sys.exit(os.EX_CONFIG)


def unknown_names(names: Iterable[str]) -> list[str]:
    """Return the names that look like settings but are neither the hub's nor its client's, nor of
    its tests and benchmarks. Another program may have set them: Kubernetes describes a service
    `eventhub` by EVENTHUB_PORT.
    """
    known = _NAMES | CLIENT_VARIABLES
    given = (name for name in names if name.startswith(PREFIX) and name not in known)
    return sorted(name for name in given if not name.startswith(_DEVELOPMENT))


def _misspelt(names: Iterable[str]) -> Iterable[str]:
    """Yield a suggestion for each unknown variable that resembles a known one or is its prefix."""
    meant = {name.removeprefix(PREFIX): name for name in (_NAMES | CLIENT_VARIABLES)}
    for name in unknown_names(names):
        if close := _closest(name.removeprefix(PREFIX), meant):
            yield f"{name} is not a setting of the hub; did you mean {meant[close]}?"


def _unknown_in(path: str, file: Mapping[str, object]) -> Iterable[str]:
    """Yield an error for each unknown name in the file, which has settings of the hub only."""
    for name in sorted(file.keys() - SETTINGS.keys()):
        close = _closest(name.lower().removeprefix(PREFIX.lower()), SETTINGS)
        hint = f"did you mean {close}?" if close else "docs/settings.md lists the settings"
        yield f"{path}: {name} is not a setting of the hub; {hint}"


def _closest(name: str, known: Iterable[str]) -> str | None:
    for one in known:
        if one.startswith(f"{name}_"):
            return one
    close = difflib.get_close_matches(name, known, n=1, cutoff=MISSPELT_LIKENESS_MIN)
    return close[0] if close else None
