"""Django's ASGI handler with one change of threads for each request. Django module."""

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpRequest
from django.http.response import HttpResponseBase


class OneThreadHandler(ASGIHandler):  # type: ignore[misc]
    """Runs the middleware and the view of a request, which are all synchronous, together in the
    request's thread. Django's own handler passes the request to the thread and back once more for
    each middleware, which took a third of the time of a small answer.
    """

    def load_middleware(self, is_async: bool = False) -> None:
        """Load the middleware for use in a thread."""
        super().load_middleware(is_async=False)

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        """Return the answer of the middleware and the view; errors are answers, too."""
        return await sync_to_async(self.get_response)(request)
