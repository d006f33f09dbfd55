"""The TypeScript client for tests: its tools, and its package as `make client` builds it."""

import os
import shutil
import subprocess
from pathlib import Path

HOME = Path(__file__).resolve().parents[1]
CLIENT = HOME / "clients/typescript"
WAIT_S = 150


def run(name: str, *arguments: str | Path, cwd: Path = CLIENT, **variables: str) -> str:
    """Run `node` or `npm` of the environment and return its output. Fails the test with the output
    if it fails.
    """
    tool = shutil.which(name, path=f"{HOME / '.venv' / 'bin'}:{os.environ['PATH']}")
    assert tool is not None
    done = subprocess.run(
        [tool, *arguments],
        cwd=cwd,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(folder: Path) -> None:
    """Compile the client into a folder, without checking types, which `make lint-types` does."""
    if not (CLIENT / "src/generated/openapi.ts").exists():
        run("node", "build/types.mjs")
    compiler = HOME / "frontend/node_modules/typescript/bin/tsc"
    run("node", compiler, "-p", "tsconfig.build.json", "--noCheck", "--outDir", str(folder))
