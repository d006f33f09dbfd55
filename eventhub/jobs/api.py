"""Doors to jobs: what there is, its runs, one more run, its end, its log and its result."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from django.http import HttpResponse, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from eventhub import errors, limits
from eventhub.access.schema import ZONE, Operation, documented
from eventhub.access.view import ManagementView, actor_of, read_body, read_page
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
from eventhub.jobs.serializers import (
    AskSerializer,
    JobsSerializer,
    NothingSerializer,
    RunSerializer,
    RunShownSerializer,
    RunsSerializer,
    run_json,
)
from registrations.errors import FilterSyntax, FilterTooLarge
from registrations.pages import asked_number, number_of

_RUN = (UnknownJob, UnknownRun)
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


class Jobs(ManagementView):
    """The jobs there are."""

    conditional = False

    @documented(Operation("List the jobs", {200: JobsSerializer}))
    def get(self, request: Request) -> Response:
        return Response(selectors.list_jobs(actor=actor_of(request), clock=SystemClock()))


class Runs(ManagementView):
    """A job's runs."""

    conditional = False
    queries = frozenset({"limit", "before"})

    @documented(
        Operation(
            "List the runs of a job",
            {200: RunsSerializer},
            (errors.InvalidField, UnknownJob),
            parameters=(
                ZONE,
                OpenApiParameter("before", int, description="The `next` of the page before."),
                OpenApiParameter(
                    "limit", int, description=f"Runs per page, 1 to {limits.PAGE_ITEMS_MAX}."
                ),
            ),
        )
    )
    def get(self, request: Request, job: str) -> Response:
        actor, before = actor_of(request), asked_number(request, "before")
        count = read_page(request).limit
        found = selectors.list_runs(actor=actor, job=job, before=before, count=count + 1)
        runs = [run_json(run) for run in found[:count]]
        return Response({"runs": runs, "next": runs[-1]["id"] if len(found) > count else None})

    @documented(
        Operation(
            "Ask for a run of a job; a worker does it",
            {202: RunSerializer},
            (
                *(UnknownJob, TooManyRuns, errors.NotFound, errors.UnknownStream),
                *(errors.MissingField, errors.InvalidName, errors.FieldTooLong),
                *(FilterSyntax, FilterTooLarge),
            ),
            AskSerializer,
        )
    )
    def post(self, request: Request, job: str) -> Response:
        actor = actor_of(request)
        actor.require_operator()
        body = read_body(request, AskSerializer)
        name = request.user.get_username()
        run = services.ask_run(actor=actor, job=job, params=body["params"], requested_by=name)
        return Response(run_json(run), 202)


class OneRun(ManagementView):
    """One run."""

    conditional = False

    @documented(Operation("Show a run", {200: RunShownSerializer}, _RUN))
    def get(self, request: Request, job: str, run: str) -> Response:
        shown = selectors.show_run(actor=actor_of(request), job=job, run=_number(run))
        files = [file._asdict() for file in shown.files]
        return Response({**run_json(shown.run), "details": shown.details, "files": files})


class Cancel(ManagementView):
    """The end of a run before its time."""

    conditional = False

    @documented(
        Operation(
            "Cancel a run", {202: RunSerializer}, (*_RUN, RunOver, RunPublishing), NothingSerializer
        )
    )
    def post(self, request: Request, job: str, run: str) -> Response:
        actor = actor_of(request)
        read_body(request, NothingSerializer)
        return Response(run_json(services.cancel_run(actor=actor, job=job, run=_number(run))), 202)


class Log(ManagementView):
    """What Spark wrote."""

    conditional = False

    @documented(
        Operation("Show the end of a run's log", {(200, "text/plain"): OpenApiTypes.STR}, _RUN)
    )
    def get(self, request: Request, job: str, run: str) -> HttpResponse:
        log = selectors.read_log(actor=actor_of(request), job=job, run=_number(run))
        return HttpResponse(log, content_type="text/plain; charset=utf-8")


class ResultFile(ManagementView):
    """One file of a run's result."""

    conditional = False

    @documented(
        Operation(
            "Get a file of a run's result",
            {(200, "application/octet-stream"): OpenApiTypes.BINARY},
            (*_RUN, errors.NotFound, ResultGone),
        )
    )
    def get(self, request: Request, job: str, run: str, path: str) -> StreamingHttpResponse:
        place, file = selectors.find_file(
            actor=actor_of(request), job=job, run=_number(run), name=path
        )
        answer = StreamingHttpResponse(
            _chunks(place), content_type=_MEDIA.get(place.suffix, "application/octet-stream")
        )
        answer["Content-Length"] = str(file.bytes)
        answer["Content-Security-Policy"] = _POLICY
        answer["X-Frame-Options"] = "SAMEORIGIN"
        if place.suffix not in _SHOWN:
            answer["Content-Disposition"] = f'attachment; filename="{place.name}"'
        return answer


def _number(run: str) -> int:
    return number_of(run, otherwise=UnknownRun(field="run"))


async def _chunks(path: Path) -> AsyncIterator[bytes]:
    """Read beside the event loop, so that a slow disk delays nobody."""
    with await asyncio.to_thread(path.open, "rb") as file:
        while chunk := await asyncio.to_thread(file.read, limits.JOB_FILE_CHUNK_BYTES):
            yield chunk
