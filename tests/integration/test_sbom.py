"""`make sbom`: every package that is shipped, with its version."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

HOME = Path(__file__).parents[2]


def components(name: str) -> set[tuple[str, str]]:
    document: dict[str, Any] = json.loads((HOME / "build" / "sbom" / name).read_text())
    assert document["bomFormat"] == "CycloneDX"
    assert all(one["purl"].startswith("pkg:") for one in document["components"])
    return {
        (f"{one['group']}/{one['name']}" if one.get("group") else one["name"], one["version"])
        for one in document["components"]
    }


def test_every_package_that_is_shipped_is_listed() -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(["make", "sbom"], cwd=HOME, env=env, capture_output=True, text=True,
                          check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    locked = re.findall(
        r"^([\w.-]+)(?:\[.*\])?==(\S+)", (HOME / "requirements.txt").read_text(), re.M
    )
    assert components("python.cdx.json") == set(locked)
    lock = json.loads((HOME / "frontend" / "package-lock.json").read_text())
    installed = {
        (path.rpartition("node_modules/")[2], found["version"])
        for path, found in lock["packages"].items()
        if path and not found.get("dev")
    }
    asked = lock["packages"][""]["dependencies"].keys()
    shipped = components("console.cdx.json")
    assert shipped <= installed
    assert asked <= {name for name, _ in shipped}
