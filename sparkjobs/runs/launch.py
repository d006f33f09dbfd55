"""The command and environment of a job's driver: spark-submit with a properties file, or Python
without Spark. Plain module.

Nothing is downloaded at run time, no secret is on a command line or in the environment, and all of
Spark's files are in the run's folder.
"""

import os
import re
import sys
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from eventhub.base import limits
from eventhub.base.errors import EventHubError
from sparkjobs.runs.errors import LocalFailed, SparkConfUnreadable, SparkFailed
from sparkjobs.runs.folders import RunFolder
from sparkjobs.runs.java import find_java, home_of

HOME = Path(__file__).resolve().parents[2]  # the folder of the packages
# What jobs import from this repository: no framework, no driver (contract in pyproject.toml)
_SHIPPED = (
    *("sparkjobs/*.py", "sparkjobs/audit/*.py", "sparkjobs/backtest/*.py"),
    *("sparkjobs/match_index/*.py", "sparkjobs/report/*.py", "sparkjobs/retention/*.py"),
    *("registrations/matching/*.py", "registrations/__init__.py", "registrations/filters/*.py"),
    *("registrations/filters/cel/*.py", "registrations/filters/cesql/*.py"),
    *("registrations/match_index/__init__.py", "registrations/match_index/engines/*.py"),
    "registrations/match_index/format/*.py",
    *("registrations/patterns/*.py", "registrations/temporal/*.py", "registrations/agents/*.py"),
    *("registrations/pattern_groups/__init__.py", "registrations/pattern_groups/consumed.py"),
    *("registrations/pattern_groups/definition.py", "registrations/pattern_groups/engine.py"),
    "registrations/pattern_groups/shown.py",
    *(
        "registrations/compiled_filter_cache.py",
        "registrations/errors.py",
    ),
    *("registrations/filter_source.py", "eventhub/__init__.py", "eventhub/event/*.py"),
    *("eventhub/base/__init__.py", "eventhub/base/arrow.py", "eventhub/base/clock.py"),
    *("eventhub/base/errors.py", "eventhub/base/limits.py"),
)
# Variables that a driver does not need, and that others on the machine might read from it.
_WITHHELD = re.compile(r"DATABASE_|REDIS_|DJANGO_|PROMETHEUS_|EVENTHUB_|SPARK_|PYSPARK_")
_LOCAL = re.compile(r"local(\[(\d+|\*)(,\s*\d+)?\])?")
# Of a job's time most goes into planning. Spark would note where each column was made, by calls of
# the JVM and a look at the stack, and check each plan after each step of the optimizer.
QUICK_PLANS = {
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.lightweightPlanChangeValidation": "false",
}
_LOOPBACK = re.compile(r"spark://(localhost|127\.[\d.]+|\[::1\])(:\d+)?")


class SparkSettings(NamedTuple):
    """The hub's settings for Spark (docs/settings.md)."""

    master: str
    memory: str  # of the driver, and of each executor
    conf: str  # a properties file; "": none
    java_home: str

    @property
    def is_local(self) -> bool:
        return _LOCAL.fullmatch(self.master) is not None

    @property
    def cores(self) -> int:
        """The cores of a local master, else of this machine."""
        match = _LOCAL.fullmatch(self.master)
        given = (match[2] or "1") if match else "*"
        return len(os.sched_getaffinity(0)) if given == "*" else int(given)


class DriverCommand(NamedTuple):
    """The command that starts a driver. `secrets`: texts to redact in its log; `failure`: the error
    if it fails.
    """

    argv: tuple[str, ...]
    env: dict[str, str]
    secrets: tuple[str, ...]
    failure: type[EventHubError] = SparkFailed


def driver_command(
    spark: SparkSettings, folder: RunFolder, name: str, launcher: Path
) -> DriverCommand:
    """Return the command for a run whose spec is written, and write the driver's properties.

    `launcher`: a folder for Java's launcher. Raises NoJava, JavaSlow, SparkConfUnreadable, OSError.
    """
    java, on_yarn = find_java(spark.java_home), spark.master.startswith("yarn")
    home = home_of(java, launcher / "yarn" if on_yarn else launcher, on_yarn=on_yarn)
    configured = _configured(spark.conf) if spark.conf else {}
    properties = {**_defaults(spark), **configured, **_fixed(spark, folder, name)}
    if not spark.is_local:
        properties["spark.submit.pyFiles"] = str(write_packages(folder.work / "packages.zip"))
    file = folder.work / "spark.conf"
    _write_private(file, properties)
    submit = Path(find_spec("pyspark").origin).parent / "bin" / "spark-submit"  # type: ignore[union-attr,arg-type]
    main = HOME / "sparkjobs" / "__main__.py"
    argv = (str(submit), "--properties-file", str(file), str(main), str(folder.spec))
    env = _environment(folder)
    env.update(JAVA_HOME=str(home), PYSPARK_PYTHON=properties["spark.pyspark.python"])
    if _is_on_this_machine(spark):
        env["SPARK_LOCAL_HOSTNAME"] = "localhost"
    secret = properties.get("spark.authenticate.secret", "")
    return DriverCommand(argv, env, (secret,) if secret else ())


def local_driver_command(folder: RunFolder) -> DriverCommand:
    """Return the command for a run whose spec is written and that does without Spark."""
    main = HOME / "sparkjobs" / "without_spark.py"
    argv = (sys.executable, str(main), str(folder.spec))
    return DriverCommand(argv, _environment(folder), (), LocalFailed)


def _environment(folder: RunFolder) -> dict[str, str]:
    """Return the environment of any driver, and create its folder of temporary files."""
    temporary = folder.work / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    env = {name: text for name, text in os.environ.items() if not _WITHHELD.match(name)}
    return {**env, "TMPDIR": str(temporary), "PYTHONUNBUFFERED": "1"}


def write_packages(path: Path) -> Path:
    """Write a zip of the packages that jobs import, for executors on other machines."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for source in _sources():
            file.write(source, source.relative_to(HOME))
    return path


def _sources() -> Iterator[Path]:
    for pattern in _SHIPPED:
        yield from sorted(HOME.glob(pattern))


def _is_on_this_machine(spark: SparkSettings) -> bool:
    return spark.is_local or _LOOPBACK.match(spark.master) is not None


def _defaults(spark: SparkSettings) -> dict[str, str]:
    """Return properties that the operator's file may override."""
    properties = {
        "spark.driver.memory": spark.memory,
        "spark.executor.memory": spark.memory,
        "spark.driver.maxResultSize": spark.memory,
        "spark.log.level": "WARN",
        "spark.pyspark.python": sys.executable,
        "spark.ui.enabled": "false",
        **QUICK_PLANS,
    }
    if _is_on_this_machine(spark):
        partitions = limits.JOB_PARTITIONS_PER_CORE * spark.cores
        properties["spark.sql.shuffle.partitions"] = str(partitions)
    return properties


def _fixed(spark: SparkSettings, folder: RunFolder, name: str) -> dict[str, str]:
    """Return properties that jobs rely on, or that keep Spark's files in the run's folder."""
    temporary = folder.work / "tmp"
    properties = {
        "spark.master": spark.master,
        "spark.submit.deployMode": "client",
        "spark.app.name": name,
        "spark.pyspark.driver.python": sys.executable,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": str(folder.work / "warehouse"),
        "spark.local.dir": str(folder.work / "spark"),
        "spark.driver.defaultJavaOptions": f'-Djava.io.tmpdir="{temporary}" -XX:-UsePerfData',
        "spark.ui.showConsoleProgress": "false",
    }
    if _is_on_this_machine(spark):
        loopback = "127.0.0.1"
        properties.update({"spark.driver.host": loopback, "spark.driver.bindAddress": loopback})
    if spark.is_local:
        properties["spark.authenticate"] = "true"  # other local users can reach its ports
    return properties


def _configured(path: str) -> dict[str, str]:
    """Read a properties file in Spark's format: a name and a value per line, separated by `=`, `:`
    or blanks. Raises SparkConfUnreadable.
    """
    try:
        text = Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        message = f"EVENTHUB_SPARK_CONF is {path}, which cannot be read."
        raise SparkConfUnreadable(message) from error
    lines = (line.strip() for line in text.splitlines())
    pairs = (re.split(r"\s*[=:\s]\s*", line, maxsplit=1) for line in lines if line[:1] not in "#!")
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def _write_private(path: Path, properties: dict[str, str]) -> None:
    """Write properties to a file that only this user may read."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        for name, text in sorted(properties.items()):
            escaped = text.replace("\\", "\\\\").replace("\n", "\\n")
            out.write(f"{name}={escaped}\n")
