"""The API of jobs: runs, logs, results, cancellation, applying plans. Django module."""

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
from eventhub.api.serializers import EmptySerializer
from eventhub.base import errors, limits
from eventhub.base.broker import RedisOff
from eventhub.base.clock import SystemClock
from eventhub.base.env import read_env
from registrations.pattern_groups.api import TEXTS
from sparkjobs.runs import selectors, services
from sparkjobs.runs.errors import (
    NoPlan,
    ResultDeleted,
    ResultElsewhere,
    RunOver,
    RunPublishing,
    TooManyRuns,
    UnknownJob,
    UnknownRun,
)
from sparkjobs.runs.jobs import RETENTION
from sparkjobs.runs.models import JobRun
from sparkjobs.runs.serializers import (
    AppliedSerializer,
    JobsSerializer,
    RunDetailSerializer,
    RunRequestSerializer,
    RunSerializer,
)
from sparkjobs.runs.services import ApplyOptions
from sparkjobs.runs.statements import Run

_OTHER = "application/octet-stream"
_MEDIA = {
    ".csv": "text/csv; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".json": "application/json",
    ".parquet": "application/vnd.apache.parquet",
    ".png": "image/png",
    ".svg": "image/svg+xml",
}
_DISPLAYED = (".html", ".png", ".svg")  # by a browser; other files are downloaded
# a report contains its styles and pictures, and runs no scripts
_POLICY = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"
)


class JobList(ResourceView):
    """The jobs."""

    permission_classes = (IsOperator,)
    serializer_class = JobsSerializer

    @operation("List the jobs")
    def get_object(self) -> dict[str, Any]:
        return selectors.list_jobs(clock=SystemClock())


class JobRuns(ResourceView):
    """The runs of a job, newest first."""

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

    @operation("Show a run", UnknownJob, response=RunDetailSerializer)
    def retrieve(self, request: Request, **kwargs: Any) -> Response:
        return self.answer(selectors.with_result(self.get_object()))

    @operation(
        "Request a run of a job; a worker performs it",
        *(UnknownJob, TooManyRuns, RedisOff, errors.UnknownStream, *TEXTS),
        body=RunRequestSerializer,
        status=202,
    )
    def perform_create(self, body: dict[str, Any]) -> Run:
        name = self.request.user.get_username()
        return services.request_run(
            job=self.kwargs["job"], params=body["params"], requested_by=name
        )


class RunCancellation(JobRuns):
    """The cancellation of a run."""

    @operation("Cancel a run", UnknownJob, RunOver, RunPublishing, body=EmptySerializer, status=202)
    def perform_create(self, body: dict[str, Any]) -> Run:
        return services.cancel_run(job=self.kwargs["job"], run=self.key)


class RunLog(JobRuns):
    """The log that Spark wrote."""

    @operation(
        "Show the end of a run's log",
        *(UnknownJob, ResultElsewhere),
        response={(200, "text/plain"): OpenApiTypes.STR},
    )
    def retrieve(self, request: Request, **kwargs: Any) -> HttpResponse:
        log = selectors.read_log(self.get_object())
        return HttpResponse(log, content_type="text/plain; charset=utf-8")


class ResultFile(JobRuns):
    """One file of a run's result."""

    @operation(
        "Get a file of a run's result",
        *(UnknownJob, ResultDeleted, ResultElsewhere),
        response={
            (200, media.partition(";")[0]): OpenApiTypes.BINARY
            for media in (*_MEDIA.values(), _OTHER)
        },
    )
    def retrieve(self, request: Request, **kwargs: Any) -> StreamingHttpResponse:
        path, file = selectors.find_file(self.get_object(), name=kwargs["path"])
        response = StreamingHttpResponse(
            _chunks(path), content_type=_MEDIA.get(path.suffix, _OTHER)
        )
        response["Content-Length"] = str(file.bytes)
        response["Content-Security-Policy"] = _POLICY
        response["X-Frame-Options"] = "SAMEORIGIN"
        if path.suffix not in _DISPLAYED:
            response["Content-Disposition"] = f'attachment; filename="{path.name}"'
        return response


class PlanApplication(ResourceView):
    """The application of a retention plan."""

    unknown = UnknownRun
    lookup_url_kwarg = "run"
    permission_classes = (IsOperator,)
    serializer_class = AppliedSerializer

    @operation(
        "Apply a retention plan; actions that are no longer allowed are refused",
        *(NoPlan, ResultElsewhere),
        body=EmptySerializer,
        status=200,
    )
    def perform_create(self, body: dict[str, Any]) -> dict[str, Any]:
        run = selectors.find_run(job=RETENTION.name, run=self.key)
        outcomes, remaining = services.apply_plan(
            env=read_env(),
            run=run,
            options=ApplyOptions(seconds=limits.PLAN_APPLY_S_MAX),
        )
        first = sorted(outcomes, key=lambda each: each.outcome != "refused")
        listed = [
            {**each.action._asdict(), "outcome": each.outcome, "reason": each.reason}
            for each in first[: limits.PLAN_OUTCOMES_SHOWN_MAX]
        ]
        return {
            "run": run.id,
            **services.counts(outcomes),
            "remaining": remaining,
            "outcomes": listed,
        }


async def _chunks(path: Path) -> AsyncIterator[bytes]:
    """Read a file in threads, so that a slow disk does not block the event loop."""
    with await asyncio.to_thread(path.open, "rb") as file:
        while chunk := await asyncio.to_thread(file.read, limits.JOB_FILE_CHUNK_BYTES):
            yield chunk
