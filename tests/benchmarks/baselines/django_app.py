"""The Django baseline as ASGI: `get_asgi_application`, with a lifespan that opens the log."""

import os

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.benchmarks.baselines.django_settings"

from django.core.asgi import get_asgi_application

_django = get_asgi_application()

from tests.benchmarks.baselines.asgi import Receive, Scope, Send, lifespan  # noqa: E402
from tests.benchmarks.baselines.django_view import open_log  # noqa: E402


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        await lifespan(receive, send, open_log)
    else:
        await _django(scope, receive, send)
