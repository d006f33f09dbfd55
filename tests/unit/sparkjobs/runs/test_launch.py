"""The driver's command: no secrets where others can read them, all files in the run's folder."""

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from sparkjobs.runs.errors import SparkConfUnreadable
from sparkjobs.runs.folders import RunFolder
from sparkjobs.runs.launch import (
    QUICK_PLANS,
    DriverCommand,
    SparkSettings,
    driver_command,
    write_packages,
)
from tests.unit.sparkjobs.runs.test_java import java_of, version

SECRET = "hush-hush-hush"


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    found = RunFolder(tmp_path / "run")
    found.create()
    return found


def launched(
    folder: RunFolder, master: str, conf: str = ""
) -> tuple[DriverCommand, dict[str, str]]:
    """Return the command, and the properties that Spark reads."""
    own = folder.root / "operators.conf"
    own.write_text(conf)
    java = java_of(folder.root / "java", version("17.0.2"))
    found = driver_command(
        SparkSettings(master, "3g", str(own), str(java)), folder, "a name", folder.root / "l"
    )
    lines = (folder.work / "spark.conf").read_text().splitlines()
    return found, dict(line.split("=", 1) for line in lines)


def test_local_spark_stays_on_this_machine_and_in_its_folder(folder: RunFolder) -> None:
    found, properties = launched(folder, "local[3]")
    assert properties["spark.master"] == "local[3]"
    assert properties["spark.driver.host"] == properties["spark.driver.bindAddress"] == "127.0.0.1"
    assert properties["spark.authenticate"] == "true"
    assert properties["spark.ui.enabled"] == "false"
    assert QUICK_PLANS.items() <= properties.items()
    assert properties["spark.sql.session.timeZone"] == "UTC"
    assert properties["spark.sql.shuffle.partitions"] == "12"
    assert properties["spark.driver.memory"] == "3g"
    assert properties["spark.pyspark.python"] == sys.executable
    for name in ("spark.local.dir", "spark.sql.warehouse.dir"):
        assert properties[name].startswith(str(folder.work))
    assert "spark.submit.pyFiles" not in properties
    assert found.argv[-1] == str(folder.spec)


def test_the_operators_file_overrides_only_defaults(folder: RunFolder) -> None:
    conf = "# own\nspark.driver.memory 7g\nspark.app.name=theirs\n\nspark.executor.cores : 2\n"
    _, properties = launched(folder, "spark://10.0.0.1:7077", conf)
    assert properties["spark.driver.memory"] == "7g"
    assert properties["spark.executor.cores"] == "2"
    assert properties["spark.app.name"] == "a name", "properties that jobs rely on are fixed"
    assert "spark.driver.host" not in properties


@pytest.mark.parametrize(("master", "unset"), [("yarn", False), ("local", True)])
def test_a_driver_starts_without_spark_home_except_on_yarn(
    folder: RunFolder, master: str, unset: bool
) -> None:
    found, _ = launched(folder, master)
    launcher = Path(found.env["JAVA_HOME"], "bin", "java").read_text()
    assert ("unset SPARK_HOME" in launcher) == unset


def test_a_missing_operators_file_is_reported(folder: RunFolder) -> None:
    java = str(java_of(folder.root / "java", version("17.0.2")))
    spark = SparkSettings("local", "1g", str(folder.root / "none"), java)
    with pytest.raises(
        SparkConfUnreadable, match=r"EVENTHUB_SPARK_CONF is .*none, which cannot be read"
    ):
        driver_command(spark, folder, "a name", folder.root / "l")


def test_secrets_are_only_in_a_private_file(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DATABASE_URL", "EVENTHUB_SECRET_KEY", "REDIS_URL", "SPARK_CONF_DIR"):
        monkeypatch.setenv(name, SECRET)
    monkeypatch.setenv("AWS_PROFILE", "archive")
    conf = f"spark.authenticate true\nspark.authenticate.secret {SECRET}\n"
    found, properties = launched(folder, "spark://127.0.0.1:7077", conf)
    assert properties["spark.authenticate.secret"] == SECRET
    assert stat.S_IMODE((folder.work / "spark.conf").stat().st_mode) == 0o600
    assert SECRET not in " ".join(found.argv)
    assert SECRET not in " ".join(found.env.values())
    assert found.secrets == (SECRET,)
    assert found.env["AWS_PROFILE"] == "archive", "executors read the archive with it"
    assert properties["spark.driver.host"] == "127.0.0.1", "the whole cluster is on this machine"


def test_the_shipped_packages_suffice_for_executors(tmp_path: Path) -> None:
    """All modules are imported from the zip alone, without a framework or a driver."""
    path = write_packages(tmp_path / "packages.zip")
    lines = [
        "import importlib, sys, zipfile",
        f"path = {str(path)!r}",
        "sys.path = [path] + [p for p in sys.path if 'site-packages' in p or 'python3' in p]",
        "sys.meta_path = [f for f in sys.meta_path if 'editable' not in repr(f).lower()]",
        "names = zipfile.ZipFile(path).namelist()",
        "names = [n for n in names if n.startswith('sparkjobs') and '__main__' not in n]",
        "names = [n[:-3].replace('/', '.').removesuffix('.__init__') for n in names]",
        "for name in names: importlib.import_module(name)",
        "import sparkjobs, registrations",
        "assert sparkjobs.__file__.startswith(path), sparkjobs.__file__",
        "found = {'django', 'psycopg', 'redis', 'celery'} & set(sys.modules)",
        "assert not found, found",
        "print(len(names))",
    ]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 10
