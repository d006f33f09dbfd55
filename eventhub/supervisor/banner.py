"""The banner of a hub that is ready: addresses, credentials, first commands. Plain module.

The commands are for a POSIX shell in the folder of manage.py, to be copied unchanged.
"""

from collections.abc import Mapping
from shlex import quote

from eventhub.access.credentials import ZONE
from eventhub.supervisor.datafolder import Folder

READY = """
EventHub is ready at {url}
  console         {url}/console/
  API reference   {url}/docs/api
  data            {data}
  Redis           {redis}, for tasks and transient streams; the rest works without it"""

LOOPBACK = """
  callbacks       of the demo's zone {zone} may go to this machine (127.0.0.1, localhost)"""

BEFORE = """
Before other commands of manage.py:{exports}"""
# by commands that run alongside the hub
NEEDED = ("DATABASE_URL", "EVENTHUB_ARCHIVE_URL", "EVENTHUB_DATA", "EVENTHUB_MARK_URL")

DEMO = """
  credentials     {credentials} (the operator's name and password, the client's API key)"""

TRY = """
Set a new password for the operator:
  {environment}.venv/bin/python manage.py changepassword operator
Watch the demo's events (websocket {ws}/v1/ws):
  .venv/bin/python -m eventhub.demo.watch github --url {url_word} --credentials {credentials_word}
Emit an event of your own:
  curl {url_word}/v1/streams/host/events \\
    -H "Authorization: Bearer $(.venv/bin/python -c \
'import json, sys; print(json.load(open(sys.argv[1]))["client"]["key"])' {credentials_word})" \\
    --json '{{"domain": "demo", "type": "hello", "attributes": {{"from": "me"}}}}'"""

STOP = "\nCtrl-C stops it.\n"


def text(
    url: str, folder: Folder, given: Mapping[str, str], *, demo: bool, loopback: bool = False
) -> str:
    """Return the banner. `given`: the variables that the hub itself set for its processes;
    `loopback`: the demo's zone may call receivers on this machine.
    """
    exports = [f"{name}={quote(given[name])}" for name in NEEDED if name in given]
    parts = {READY: True, DEMO: demo, LOOPBACK: loopback, BEFORE: exports, TRY: demo, STOP: True}
    words = "".join(part for part, is_shown in parts.items() if is_shown)
    database = [one for one in exports if one.startswith("DATABASE_URL=")]
    return words.format(
        url=url,
        url_word=quote(url),
        ws=url.replace("http", "ws", 1),
        data=folder.root,
        redis="embedded" if "REDIS_URL" in given else "of REDIS_URL",
        exports="".join(f"\n  export {one}" for one in exports),
        zone=ZONE,
        credentials=folder.credentials,
        credentials_word=quote(str(folder.credentials)),
        environment="".join(f"{one} " for one in database),
    )
