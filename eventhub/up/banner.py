"""What the hub says when it is ready: where to look, how to get in, what to try."""

from eventhub.up.datafolder import Folder

READY = """
EventHub is ready at {url}
  API reference   {url}/docs/api
  data            {data}"""

DEMO = """
  credentials     {credentials} (operator's password, client's API key)
  new password    .venv/bin/python manage.py changepassword operator
Watch the demo's events (websocket {ws}/v1/ws):
  .venv/bin/python manage.py listen github
Send one of your own:
  curl -X POST {url}/v1/streams/host/events -H 'Content-Type: application/json' \\
    -H "Authorization: Bearer $(.venv/bin/python -c \
'import json; print(json.load(open("{credentials}"))["client"]["key"])')" \\
    -d '{{"domain": "demo", "type": "hello", "attributes": {{"from": "me"}}}}'"""

STOP = "\nCtrl-C stops it.\n"


def text(url: str, folder: Folder, *, demo: bool) -> str:
    words = READY + (DEMO if demo else "") + STOP
    return words.format(
        url=url,
        ws=url.replace("http", "ws", 1),
        data=folder.root,
        credentials=folder.credentials,
    )
