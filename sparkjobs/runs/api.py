"""Jobs: what there is, its runs, one more run, its end, its log and its result. Django module."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

from django.http import HttpResponse, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request
from rest_framework.response import Response

from eventhub.api.pagination import Listing
from eventhub.api.permissions import IsOperator
from eventhub.api.resource import ResourceView, operation
from eventhub.base import errors, limits
from eventhub.base.clock import SystemClock
from eventhub.base.env import read_env
from eventhub.base.task_requests import RedisOff
from registrations.filters.errors import FilterSyntax, FilterTooLarge
from sparkjobs.runs import selectors, services
from sparkjobs.runs.errors import (
    NoPlan,
    ResultGone,
    RunOver,
    RunPublishing,
    TooManyRuns,
    UnknownJob,
    UnknownRun,
)
from sparkjobs.runs.jobs import RETENTION
from sparkjobs.runs.models import JobRun
from sparkjobs.runs.rows import Run
from sparkjobs.runs.serializers import (
    AppliedSerializer,
    AskSerializer,
    JobsSerializer,
    NothingSerializer,
    RunSerializer,
    RunShownSerializer,
)
from sparkjobs.runs.services import ApplyOptions

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
    def get_object(self) -> dict[str, Any]:
        return selectors.list_jobs(clock=SystemClock())


class Runs(ResourceView):
    """The runs of a job, the newest first."""

    noun = "a run", "the runs of a job"
    unknown = UnknownRun
    lookup_url_kwarg = "run"
    permission_classes = (IsOperator,)
    queryset = JobRun.objects.all()
    serializer_class = RunSerializer

    @operation("List the runs of a job", UnknownJob)
    def get_queryset(self) -> Listing:
        fetch = partial(selectors.list_runs, job=self.kwargs["job"])
        return Listing(fetch, [JobRun._meta.pk])

    def get_object(self) -> Run:
        return selectors.find_run(job=self.kwargs["job"], run=self.key)

    @operation("Show a run", UnknownJob, response=RunShownSerializer)
    def retrieve(self, request: Request, **kwargs: Any) -> Response:
        return self.answer(selectors.with_result(self.get_object()))

    @operation(
        "Ask for a run of a job; a worker does it",
        *(UnknownJob, TooManyRuns, RedisOff, errors.UnknownStream, FilterSyntax, FilterTooLarge),
        body=AskSerializer,
        status=202,
    )
    def perform_create(self, body: dict[str, Any]) -> Run:
        name = self.request.user.get_username()
        return services.request_run(
            job=self.kwargs["job"], params=body["params"], requested_by=name
        )


class Cancel(Runs):
    """The end of a run before its time."""

    @operation(
        "Cancel a run", UnknownJob, RunOver, RunPublishing, body=NothingSerializer, status=202
    )
    def perform_create(self, body: dict[str, Any]) -> Run:
        return services.cancel_run(job=self.kwargs["job"], run=self.key)


class Log(Runs):
    """What Spark wrote."""

    @operation(
        "Show the end of a run's log", UnknownJob, response={(200, "text/plain"): OpenApiTypes.STR}
    )
    def retrieve(self, request: Request, **kwargs: Any) -> HttpResponse:
        log = selectors.read_log(self.get_object())
        return HttpResponse(log, content_type="text/plain; charset=utf-8")


class ResultFile(Runs):
    """One file of a run's result."""

    @operation(
        "Get a file of a run's result",
        *(UnknownJob, ResultGone),
        response={
            (200, media.partition(";")[0]): OpenApiTypes.BINARY
            for media in (*_MEDIA.values(), _OTHER)
        },
    )
    def retrieve(self, request: Request, **kwargs: Any) -> StreamingHttpResponse:
        place, file = selectors.find_file(self.get_object(), name=kwargs["path"])
        answer = StreamingHttpResponse(
            _chunks(place), content_type=_MEDIA.get(place.suffix, _OTHER)
        )
        answer["Content-Length"] = str(file.bytes)
        answer["Content-Security-Policy"] = _POLICY
        answer["X-Frame-Options"] = "SAMEORIGIN"
        if place.suffix not in _SHOWN:
            answer["Content-Disposition"] = f'attachment; filename="{place.name}"'
        return answer


class Apply(ResourceView):
    """A plan carried out."""

    unknown = UnknownRun
    lookup_url_kwarg = "run"
    permission_classes = (IsOperator,)
    serializer_class = AppliedSerializer

    @operation(
        "Carry out a retention plan; what is kept by now is refused, the rest is done",
        NoPlan,
        body=NothingSerializer,
        status=200,
    )
    def perform_create(self, body: dict[str, Any]) -> dict[str, Any]:
        run = selectors.find_run(job=RETENTION.name, run=self.key)
        outcomes, left = services.apply_plan(
            env=read_env(),
            run=run,
            by=self.request.user.get_username(),
            course=ApplyOptions(seconds=limits.PLAN_APPLY_S_MAX),
        )
        first = sorted(outcomes, key=lambda one: one.outcome != "refused")
        shown = [
            {**one.act._asdict(), "outcome": one.outcome, "why": one.why}
            for one in first[: limits.PLAN_OUTCOMES_SHOWN_MAX]
        ]
        return {
            "run": run.id,
            **services.counts(outcomes),
            "left": left,
            "outcomes": shown,
        }


async def _chunks(path: Path) -> AsyncIterator[bytes]:
    """Read beside the event loop, so that a slow disk delays nobody."""
    with await asyncio.to_thread(path.open, "rb") as file:
        while chunk := await asyncio.to_thread(file.read, limits.JOB_FILE_CHUNK_BYTES):
            yield chunk
