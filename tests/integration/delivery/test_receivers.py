"""Real deliveries are verified by the public libraries and by the examples of docs/receivers.md;
forged, stale and outdated ones are refused.
"""

import base64
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import standardwebhooks
from cloudevents.v1.http import from_http

from delivery.callbacks.signatures import sign, signer
from registrations.endpoints.secrets import public_key_text, secret_text
from tests.integration.callbacks_world import (
    KEYRING,
    SECRET,
    CallbacksWorld,
    Posted,
    draining,
    receiver,
    until,
)

HOME = Path(__file__).parents[3]
PAGE = (HOME / "docs" / "receivers.md").read_text()
GO_COPY = HOME / "tests" / "integration" / "delivery" / "receiver.go.txt"
NEW, PAIR = b"n" * 32, b"p" * 32
OLD_TEXT, NEW_TEXT = secret_text(SECRET), secret_text(NEW)
PUBLIC_KEY = public_key_text(PAIR)
OTHER_TEXT, OTHER_KEY = secret_text(b"x" * 32), public_key_text(b"x" * 32)


class Case(NamedTuple):
    """A request, the keys of its receiver, and whether it is to be accepted."""

    name: str
    keys: tuple[str, ...]
    headers: dict[str, str]
    body: bytes
    accepted: bool


def example(language: str, name: str = "") -> str:
    """Return the page's example."""
    info = re.escape(f"{language} {name}".strip())
    [found] = re.findall(rf"^```{info}\n(.*?)^```", PAGE, re.M | re.S)
    return str(found)


async def deliveries(world: CallbacksWorld) -> list[Posted]:
    """Return three deliveries: before a rotation, during its overlap and after it."""
    sent = world.events(3)
    async with receiver() as sink, draining(world):
        endpoint = world.endpoint(sink.url)
        world.sql("UPDATE endpoints SET signature = 'both' WHERE id = %s", endpoint)
        add(world, endpoint, "v1a", PAIR, "NULL")
        for count, change in enumerate((None, "now() + interval '1 day'", "now()"), 1):
            if count == 2:
                add(world, endpoint, "v1", SECRET, str(change))
                add(world, endpoint, "v1", NEW, "NULL")
            elif change:
                expire = f"UPDATE endpoint_secrets SET expires_at = {change}"
                world.sql(f"{expire} WHERE expires_at IS NOT NULL")
            world.sql("UPDATE endpoints SET changed_at = clock_timestamp()")
            world.deliver(sent._replace(sequences=[sent.sequences[count - 1]]), endpoint)
            await until(lambda: len(sink.posted) == count)  # noqa: B023
    return sink.posted


def add(world: CallbacksWorld, endpoint: int, kind: str, secret: bytes, expires: str) -> None:
    world.sql(
        "INSERT INTO endpoint_secrets (endpoint_id, kind, sealed, expires_at)"
        f" VALUES (%s, %s, %s, {expires})",
        endpoint,
        kind,
        KEYRING.seal(secret),
    )


def signed(posted: Posted, age_s: int) -> dict[str, str]:
    """Return the headers of a request that was signed some seconds ago."""
    at_s = int(time.time()) - age_s
    signers = [signer("v1", SECRET), signer("v1a", PAIR)]
    signature = sign(signers, posted.headers["webhook-id"], at_s, posted.body)
    return {
        **posted.headers,
        "webhook-timestamp": str(at_s),
        "webhook-signature": signature,
    }


def cases_of(before: Posted, during: Posted, after: Posted) -> list[Case]:
    def case(
        name: str, key: str, posted: Posted, accepted: bool, body: bytes = b"", **headers: str
    ) -> Case:
        changed = {name.replace("_", "-"): value for name, value in headers.items()}
        return Case(name, (key,), posted.headers | changed, body or posted.body, accepted)

    def stale(age_s: int, key: str) -> Case:
        return Case(f"{age_s} s old", (key,), signed(before, age_s), before.body, age_s == 0)

    relabelled = before.headers["webhook-signature"].replace("v1,", "v2,")
    swapped = relabelled.replace("v1a,", "v1,").replace("v2,", "v1a,")
    return [
        case("the secret", OLD_TEXT, before, True),
        case("the public key", PUBLIC_KEY, before, True),
        case("the old secret during the overlap", OLD_TEXT, during, True),
        case("the new secret during the overlap", NEW_TEXT, during, True),
        case("the new secret", NEW_TEXT, after, True),
        case("the old secret after the overlap", OLD_TEXT, after, False),
        case("another secret", OTHER_TEXT, before, False),
        case("another public key", OTHER_KEY, before, False),
        *(case(name, key, before, False, **change)  # type: ignore[arg-type]
          for key in (OLD_TEXT, PUBLIC_KEY)
          for name, change in {
              "a changed body": {"body": before.body.replace(b"order.placed", b"order.stolen")},
              "a changed id": {"webhook_id": "msg_1"},
              "a changed time": {"webhook_timestamp": str(int(time.time()) + 1)},
              "no signature": {"webhook_signature": ""},
              "swapped versions": {"webhook_signature": swapped},
          }.items()),
        *(stale(age_s, key) for key in (OLD_TEXT, PUBLIC_KEY) for age_s in (0, 600, -600)),
    ]  # fmt: skip


def wrong(cases: list[Case], verified: Callable[[Case], bool]) -> list[str]:
    return [f"{case.name}: {case.keys}" for case in cases if verified(case) is not case.accepted]


def by_library(library: Any) -> Callable[[Case], bool]:
    def verified(case: Case) -> bool:
        try:
            library.Webhook(case.keys[0]).verify(case.body, case.headers)
        except library.WebhookVerificationError:
            return False
        return True

    return verified


async def test_the_public_libraries_verify_deliveries(world: CallbacksWorld) -> None:
    """The packages of PyPI as they are: they know `v1`, not `v1a`."""
    import svix.webhooks  # with it the whole client, which takes a second

    cases = [each for each in cases_of(*await deliveries(world)) if "whsec_" in each.keys[0]]
    assert sum(each.accepted for each in cases) == 5
    for library in (standardwebhooks, svix.webhooks):
        assert wrong(cases, by_library(library)) == []


@pytest.mark.parametrize("format", ["cloudevents_structured", "cloudevents_binary"])
async def test_a_cloud_event_is_verified_and_read(world: CallbacksWorld, format: str) -> None:
    async with receiver() as sink, draining(world):
        endpoint = world.endpoint(sink.url, format=format)
        world.deliver(world.events(1, body=b'{"n": 1}', content_type="application/json"), endpoint)
        await until(lambda: len(sink.posted) == 1)
    [posted] = sink.posted
    standardwebhooks.Webhook(OLD_TEXT).verify(posted.body, posted.headers)
    scope: dict[str, Any] = {}
    exec(example("python", "cloudevents"), scope)
    found = scope["event_type"](posted.headers, posted.body)
    assert found == from_http(posted.headers, posted.body)["type"]
    assert "order.placed" in found


async def test_the_examples_in_python_verify_deliveries(world: CallbacksWorld) -> None:
    cases = cases_of(*await deliveries(world))
    library: dict[str, Any] = {}
    exec(example("python", "library"), library)
    symmetric = [each for each in cases if "whsec_" in each.keys[0]]
    assert (
        wrong(symmetric, lambda case: library["verified"](*case.keys, case.headers, case.body))
        == []
    )
    client: dict[str, Any] = {}
    exec(example("python", "client"), client)
    assert (
        wrong(cases, lambda case: client["verified"]([*case.keys], case.headers, case.body)) == []
    )
    assert client["verified"]([OTHER_TEXT, OTHER_KEY, NEW_TEXT], *cases[4][2:4])


def answers(command: list[str], cases: list[Case]) -> list[bool]:
    """Return what a program that reads the cases says to each."""
    given = [
        {"keys": case.keys, "headers": case.headers, "body": base64.b64encode(case.body).decode()}
        for case in cases
    ]
    environment = {**os.environ, "GOPROXY": "off", "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod"}
    environment |= {"CGO_ENABLED": "0", "GOGC": "800"}
    done = subprocess.run(
        command,
        input=json.dumps(given),
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[bool] = json.loads(done.stdout)
    return found


def node() -> str:
    """Return the path of the environment's Node."""
    found = shutil.which("node", path=f"{HOME / '.venv' / 'bin'}:{os.environ['PATH']}")
    assert found is not None
    return found


IN_NODE = """
import { readFileSync } from "node:fs";
const cases = JSON.parse(readFileSync(0, "utf8"));
const answers = cases.map(({ keys, headers, body }) =>
  verified(keys, headers, Buffer.from(body, "base64")),
);
console.log(JSON.stringify(answers));
"""


LIBRARY_IN_NODE = """
import { createRequire } from "node:module";
const { Webhook } = createRequire(process.argv[2])("standardwebhooks");
const verified = ([secret], headers, body) => {
  try {
    new Webhook(secret).verify(body, headers);
    return true;
  } catch {
    return false;
  }
};
"""


async def test_the_public_library_of_npm_verifies_deliveries(
    world: CallbacksWorld, tmp_path: Path
) -> None:
    cases = [each for each in cases_of(*await deliveries(world)) if "whsec_" in each.keys[0]]
    program = tmp_path / "receiver.mjs"
    program.write_text(LIBRARY_IN_NODE + IN_NODE)
    found = answers([node(), str(program), str(HOME / "frontend" / "package.json")], cases)
    assert wrong(cases, lambda case: found[cases.index(case)]) == []


async def test_the_example_in_typescript_verifies_deliveries(
    world: CallbacksWorld, tmp_path: Path
) -> None:
    cases = cases_of(*await deliveries(world))
    cases.append(cases[4]._replace(name="one of several", keys=(OTHER_KEY, OTHER_TEXT, NEW_TEXT)))
    program = tmp_path / "receiver.mts"
    program.write_text(example("typescript") + IN_NODE)
    found = answers([node(), str(program)], cases)
    assert wrong(cases, lambda case: found[cases.index(case)]) == []


# with nothing kept from before, its library is compiled, too: twice as fast without optimizations
GO_RUN = ("run", "-gcflags=all=-N -l", "-ldflags=-s -w")
IN_GO = """package main

import (
	"encoding/json"
	"os"
)

func main() {
	var cases []struct {
		Keys    []string
		Headers map[string]string
		Body    []byte
	}
	if err := json.NewDecoder(os.Stdin).Decode(&cases); err != nil {
		panic(err)
	}
	answers := []bool{}
	for _, one := range cases {
		answers = append(answers, Verified(one.Keys, one.Headers, one.Body))
	}
	json.NewEncoder(os.Stdout).Encode(answers)
}
"""


async def test_the_example_in_go_verifies_deliveries(world: CallbacksWorld, tmp_path: Path) -> None:
    """Where there is no Go, the example is compared with the copy that this test has run: a change
    of the example is run with Go first, and then copied.
    """
    assert example("go") == GO_COPY.read_text()
    go = shutil.which("go")
    if go is None:
        return
    cases = cases_of(*await deliveries(world))
    cases.append(cases[4]._replace(name="one of several", keys=(OTHER_KEY, OTHER_TEXT, NEW_TEXT)))
    files = {"receiver.go": example("go"), "main.go": IN_GO}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    found = answers([go, *GO_RUN, *(str(tmp_path / name) for name in files)], cases)
    assert wrong(cases, lambda case: found[cases.index(case)]) == []
