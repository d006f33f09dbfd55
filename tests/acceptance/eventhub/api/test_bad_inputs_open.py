"""Bad input of the routes without a key: health, readiness, metrics, the pages about the API and
the console; and of paths without a route.
"""

from collections.abc import Iterator

import pytest

from tests.acceptance.bad_inputs import Bad, World

pytestmark = pytest.mark.usefixtures("untouched")
OPERATIONS = ("/healthz", "/readyz", "/metrics")
PAGES = ("/docs/asyncapi.json", "/docs/openapi.json", "/docs/api", "/docs/errors")
CONSOLE = {
    "GET /": "/",
    "GET /console": "/console",
    "GET /console/": "/console/",
    "GET /console/{path}": "/console/live",
}
NO_FILES = ("assets/none.js", "assets/../index.html", "index.html", "..%2f..%2fmanage.py", "a.php")
METHODS = ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")


def _cases() -> Iterator[Bad]:
    for path in (*OPERATIONS, *PAGES):
        route = f"GET {path}"
        for method in METHODS:
            yield Bad(method, route, path, 405, "method_not_allowed", method=method, key="")
        yield Bad("slash behind", route, f"{path}/", 404, "not_found", key="")
        yield Bad("NUL behind", route, f"{path}%00", 404, "not_found", key="")
        large = {"Content-Length": "99999999"}
        if path in PAGES:
            yield Bad("large body", route, path, 413, "body_too_large", key="", headers=large)


def _console_cases() -> Iterator[Bad]:
    for route, path in CONSOLE.items():
        for method in METHODS:
            yield Bad(method, route, path, 405, "method_not_allowed", method=method, key="")
        large = {"Content-Length": "99999999"}
        yield Bad("large body", route, path, 413, "body_too_large", key="", headers=large)
    for file in NO_FILES:
        route = "GET /console/{path}"
        yield Bad(f"no file {file}", route, f"/console/{file}", 404, "not_found", key="")


CASES = (*_cases(), *_console_cases())
NOWHERE = tuple(
    Bad(path[:20], "GET /", path, 404, "not_found", key="")
    for path in ("/v1", "/v1/", "/v2/streams", "/admin", "/static/..%2f..%2fetc/passwd",
                 "/%00", "/%ff", "//healthz", "/v1/streams/../../healthz", "/" + "a" * 9_000)
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.route} {case.name}")
def test_bad_request_at_a_public_route(world: World, case: Bad) -> None:
    world.check(case)


@pytest.mark.parametrize("case", NOWHERE, ids=lambda case: case.name)
def test_a_path_that_is_none(world: World, case: Bad) -> None:
    world.check(case)
