"""The client's own distribution: it installs and runs without the hub, Django, Spark or servers."""

import shutil
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from eventhub.base.version import VERSION
from tests.integration.up_process import HOME

# runs with the wheel alone on its path, and refuses what a client has no use for
PROGRAM = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"celery", "channels", "django", "psycopg", "pyspark", "redis",
                                  "rest_framework", "delivery", "sparkjobs"}:
            raise ImportError(f"the client imports {name}")

sys.meta_path.insert(0, Refuse())
wheel, site = sys.argv[1:3]
sys.path[:] = [wheel, *(path for path in sys.path if "python3" in path), site]
import eventhub_client.commands.main, eventhub_client.quench, eventhub_client.sync
from click.testing import CliRunner
assert all(
    module.__file__.startswith(wheel)
    for name, module in sys.modules.items()
    if name.split(".")[0] in {"eventhub", "eventhub_client", "registrations"} and module.__file__
)
done = CliRunner().invoke(eventhub_client.commands.main.main, ["registrations", "--help"])
assert done.exit_code == 0 and "create" in done.output, done.output
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel once, of nothing that an earlier build left."""
    shutil.rmtree(HOME / "clients/python/build", ignore_errors=True)
    folder = tmp_path_factory.mktemp("wheel")
    words = ("pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet", "-w", str(folder))
    subprocess.run([sys.executable, "-m", *words, str(HOME / "clients/python")], check=True)
    [file] = folder.glob("*.whl")
    return file


def test_the_wheel_runs_without_the_hub_and_its_frameworks(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(tmp_path)
    site = next(path for path in sys.path if path.endswith("site-packages"))
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", PROGRAM, str(tmp_path), site],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_wheel_has_the_hubs_version_and_few_requirements(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        [name] = [name for name in packed.namelist() if name.endswith("METADATA")]
        found = Parser().parsestr(packed.read(name).decode())
    assert found["Version"] == VERSION
    needs = {text.split()[0] for text in found.get_all("Requires-Dist", [])}
    assert needs == {
        "aiohttp",
        "click",
        "cryptography",
        "jsonschema-rs",
        "lark",
        "msgspec",
        "orjson",
        "protobuf",
    }
