"""Jobs: what there is, its runs, one more run, its end, its log and its result."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from django.http import HttpResponse, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request

from eventhub import errors, limits
from eventhub.access.pagination import Listing
from eventhub.access.permissions import IsOperator
from eventhub.access.resource import ResourceView, operation
from eventhub.clock import SystemClock
from eventhub.jobs import selectors, services
from eventhub.jobs.errors import (
    ResultGone,
    RunOver,
    RunPublishing,
    TooManyRuns,
    UnknownJob,
    UnknownRun,
)
from eventhub.jobs.models import JobRun
from eventhub.jobs.rows import Run
from eventhub.jobs.selectors import Jobs, Shown
from eventhub.jobs.serializers import (
    AskSerializer,
    JobsSerializer,
    NothingSerializer,
    RunSerializer,
    RunShownSerializer,
)
from eventhub.soon import RedisOff
from registrations.errors import FilterSyntax, FilterTooLarge

_OTHER = "application/octet-stream"
_MEDIA = {
    ".csv": "text/csv; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".json": "application/json",
    ".parquet": "application/vnd.apache.parquet",
    ".png": "image/png",
    ".svg": "image/svg+xml",
}
_SHOWN = (".html", ".png", ".svg")  # in a browser; others are kept by it
# a report brings its own style and pictures, and runs nothing
_POLICY = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"
)


class AllJobs(ResourceView):
    """The jobs there are."""

    permission_classes = (IsOperator,)
    serializer_class = JobsSerializer

    @operation("List the jobs")
    def get_object(self) -> Jobs:
        return selectors.list_jobs(clock=SystemClock())


class Runs(ResourceView):
    """The runs of a job, the newest first."""

    noun = "a run", "the runs of a job"
    unknown = UnknownRun
    lookup_url_kwarg = "run"
    permission_classes = (IsOperator,)
    queryset = JobRun.objects.all()
    serializer_class = RunSerializer

    @property
    def run(self) -> dict[str, Any]:
        """What the path names."""
        return {"job": self.kwargs["job"], "run": self.key}

    @operation("List the runs of a job", UnknownJob)
    def get_queryset(self) -> Listing:
        def fetch(after: tuple[Any, ...] | None, count: int) -> list[Run]:
            [before] = after or (None,)
            return selectors.list_runs(job=self.kwargs["job"], before=before, count=count)

        return Listing(fetch, [JobRun._meta.pk])

    @operation("Show a run", UnknownJob, answer=RunShownSerializer)
    def get_object(self) -> Shown:
        return selectors.show_run(**self.run)

    @operation(
        "Ask for a run of a job; a worker does it",
        *(UnknownJob, TooManyRuns, RedisOff, errors.UnknownStream, FilterSyntax, FilterTooLarge),
        body=AskSerializer,
        status=202,
    )
    def perform_create(self, body: dict[str, Any]) -> Run:
        name = self.request.user.get_username()
        return services.ask_run(job=self.kwargs["job"], params=body["params"], requested_by=name)


class Cancel(Runs):
    """The end of a run before its time."""

    @operation(
        "Cancel a run", UnknownJob, RunOver, RunPublishing, body=NothingSerializer, status=202
    )
    def perform_create(self, body: dict[str, Any]) -> Run:
        return services.cancel_run(**self.run)


class Log(Runs):
    """What Spark wrote."""

    @operation(
        "Show the end of a run's log", UnknownJob, answer={(200, "text/plain"): OpenApiTypes.STR}
    )
    def retrieve(self, request: Request, **kwargs: Any) -> HttpResponse:
        log = selectors.read_log(**self.run)
        return HttpResponse(log, content_type="text/plain; charset=utf-8")


class ResultFile(Runs):
    """One file of a run's result."""

    @operation(
        "Get a file of a run's result",
        *(UnknownJob, ResultGone),
        answer={
            (200, media.partition(";")[0]): OpenApiTypes.BINARY
            for media in (*_MEDIA.values(), _OTHER)
        },
    )
    def retrieve(self, request: Request, **kwargs: Any) -> StreamingHttpResponse:
        place, file = selectors.find_file(**self.run, name=kwargs["path"])
        answer = StreamingHttpResponse(
            _chunks(place), content_type=_MEDIA.get(place.suffix, _OTHER)
        )
        answer["Content-Length"] = str(file.bytes)
        answer["Content-Security-Policy"] = _POLICY
        answer["X-Frame-Options"] = "SAMEORIGIN"
        if place.suffix not in _SHOWN:
            answer["Content-Disposition"] = f'attachment; filename="{place.name}"'
        return answer


async def _chunks(path: Path) -> AsyncIterator[bytes]:
    """Read beside the event loop, so that a slow disk delays nobody."""
    with await asyncio.to_thread(path.open, "rb") as file:
        while chunk := await asyncio.to_thread(file.read, limits.JOB_FILE_CHUNK_BYTES):
            yield chunk
