"""What the hub says when it is ready: where to look, how to get in, what to try.

Its commands are for a POSIX shell in the folder of manage.py, to be copied as they are.
"""

from collections.abc import Mapping
from shlex import quote

from eventhub.up.datafolder import Folder

READY = """
EventHub is ready at {url}
  console         {url}/console/
  API reference   {url}/docs/api
  data            {data}"""

DATABASE = """
Before other commands of manage.py:
  export DATABASE_URL={database}"""

DEMO = """
  credentials     {credentials} (the operator's name and password, the client's API key)"""

TRY = """
A new password for the operator:
  {environment}.venv/bin/python manage.py changepassword operator
Watch the demo's events (websocket {ws}/v1/ws):
  .venv/bin/python -m eventhub.demo.watch github --url {url_word} --credentials {credentials_word}
Send one of your own:
  curl -X POST {url_word}/v1/streams/host/events -H 'Content-Type: application/json' \\
    -H "Authorization: Bearer $(.venv/bin/python -c \
'import json, sys; print(json.load(open(sys.argv[1]))["client"]["key"])' {credentials_word})" \\
    -d '{{"domain": "demo", "type": "hello", "attributes": {{"from": "me"}}}}'"""

STOP = "\nCtrl-C stops it.\n"


def text(url: str, folder: Folder, servers: Mapping[str, str], *, demo: bool) -> str:
    """`servers`: the variables of the embedded servers, which other commands need."""
    database = quote(servers.get("DATABASE_URL", ""))
    embedded = "DATABASE_URL" in servers
    words = READY + (DEMO if demo else "") + (DATABASE if embedded else "")
    return (words + (TRY if demo else "") + STOP).format(
        url=url,
        url_word=quote(url),
        ws=url.replace("http", "ws", 1),
        data=folder.root,
        database=database,
        credentials=folder.credentials,
        credentials_word=quote(str(folder.credentials)),
        environment=f"DATABASE_URL={database} " if embedded else "",
    )
