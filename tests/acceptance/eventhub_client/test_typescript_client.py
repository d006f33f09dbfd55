"""The TypeScript client: its tests, which Node runs on the sources as they are, some against the
running hub; and the package as it is published.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

from tests.acceptance.consumers import create_session
from tests.live import LiveZone

HOME = Path(__file__).resolve().parents[3]
CLIENT = HOME / "clients/typescript"
STREAMS = (
    *("resumed-websocket", "resumed-sse", "resumed-poll", "windowed", "repeated"),
    *("session-websocket", "session-sse", "session-pulled"),
)
WAIT_S = 150


def tool(name: str) -> str:
    """Return the path of `node` or `npm` of the environment."""
    found = shutil.which(name, path=f"{HOME / '.venv' / 'bin'}:{os.environ['PATH']}")
    assert found is not None
    return found


def run(name: str, *arguments: str | Path, cwd: Path = CLIENT, **variables: str) -> str:
    """Run a tool and return its output. Fails the test with the output if it fails."""
    done = subprocess.run(
        [tool(name), *arguments],
        cwd=cwd,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def passed(output: str) -> int:
    """Return the number of tests that passed."""
    return int(output.partition("\n# pass ")[2].split()[0])


TESTS = ("--test", "--test-reporter=tap", "--no-warnings")


def test_both_clients_agree_about_the_vectors() -> None:
    """`tests/unit/eventhub_client/test_vectors.py` runs the same for Python."""
    vectors = json.loads((HOME / "clients/test_vectors.json").read_bytes())
    each = ("positions", "requests", "event_streams", "problems", "closes", "signatures", "cursors")
    output = run("node", *TESTS, "test/vectors.test.ts")
    assert passed(output) > sum(len(vectors[name]) for name in each)


def test_the_client_against_the_running_hub(zone: LiveZone) -> None:
    for stream in STREAMS:
        zone.create_stream(stream)
        if stream.startswith("session-"):
            create_session(zone, stream)
            zone.register({"streams": [stream], "session": stream})
    zone.create_stream("prices", keyed=True)
    output = run(
        "node", *TESTS, "test/hub.test.ts", HUB_URL=zone.hub.web[0].url, HUB_KEY=zone.admin
    )
    assert passed(output) == 13


IMPORTS = """
import { HubClient, parseCursor } from "@eventhub/client";
import { verify } from "@eventhub/client/callbacks";
new HubClient("http://127.0.0.1", "ehk_x").session("s").close();
if (typeof parseCursor !== "function" || typeof verify !== "function") process.exit(1);
"""


def test_the_package_has_what_its_users_import_and_nothing_else(tmp_path: Path) -> None:
    """It is built as `make client` does, and imported as from a registry."""
    compiler = HOME / "frontend/node_modules/typescript/bin/tsc"
    if not (CLIENT / "src/generated/openapi.ts").exists():
        run("node", "build/types.mjs")
    package = tmp_path / "package"
    built = ("-p", "tsconfig.build.json", "--noCheck", "--outDir", str(package / "dist"))
    run("node", compiler, *built)
    for file in (CLIENT / "package.json", CLIENT / "README.md", HOME / "LICENSE"):
        shutil.copy(file, package)
    (package / "left-over.ts").touch()
    packed = run("npm", "pack", "--json", "--ignore-scripts", "--offline", cwd=package)
    [made] = json.loads(packed)
    names = {file["path"] for file in made["files"]}
    outside = {name for name in names if not name.startswith("dist/")}
    assert outside == {"package.json", "README.md", "LICENSE"}
    described = json.loads((CLIENT / "package.json").read_bytes())
    entries = [one for one in described["exports"].values() if isinstance(one, dict)]
    assert {path.removeprefix("./") for one in entries for path in one.values()} <= names
    assert "dependencies" not in described

    installed = tmp_path / "user/node_modules/@eventhub/client"
    shutil.unpack_archive(package / made["filename"], tmp_path / "unpacked", "gztar")
    shutil.copytree(tmp_path / "unpacked/package", installed)
    (tmp_path / "user/use.mjs").write_text(IMPORTS)
    run("node", "use.mjs", cwd=tmp_path / "user")
