"""What the hub says when it is ready: where to look, how to get in, what to try."""

from collections.abc import Mapping

from eventhub.up.datafolder import Folder

READY = """
EventHub is ready at {url}
  API reference   {url}/docs/api
  data            {data}"""

DEMO = """
  credentials     {credentials} (the operator's password, the client's API key)
  new password    {environment}.venv/bin/python manage.py changepassword operator
Watch the demo's events (websocket {ws}/v1/ws):
  .venv/bin/python -m eventhub.demo.watch github --url {url} --credentials {credentials}
Send one of your own:
  curl -X POST {url}/v1/streams/host/events -H 'Content-Type: application/json' \\
    -H "Authorization: Bearer $(.venv/bin/python -c \
'import json; print(json.load(open("{credentials}"))["client"]["key"])')" \\
    -d '{{"domain": "demo", "type": "hello", "attributes": {{"from": "me"}}}}'"""

STOP = "\nCtrl-C stops it.\n"


def text(url: str, folder: Folder, servers: Mapping[str, str], *, demo: bool) -> str:
    """`servers`: the variables of the embedded servers, which other commands need."""
    database = servers.get("DATABASE_URL")
    words = READY + (DEMO if demo else "") + STOP
    return words.format(
        url=url,
        ws=url.replace("http", "ws", 1),
        data=folder.root,
        credentials=folder.credentials,
        environment=f"DATABASE_URL='{database}' " if database else "",
    )
