"""A retention plan carried out."""

from typing import Any, get_args

from rest_framework import serializers

from eventhub import limits
from eventhub.access.permissions import IsOperator
from eventhub.access.resource import ResourceView, operation
from eventhub.access.shapes import Serializer
from eventhub.env import read_env
from eventhub.jobs import selectors
from eventhub.jobs.errors import NoPlan, UnknownRun
from eventhub.jobs.kinds import RETENTION
from eventhub.jobs.retention import services
from eventhub.jobs.retention.acting import Done
from eventhub.jobs.retention.services import Course
from eventhub.jobs.serializers import NothingSerializer


class OutcomeSerializer(Serializer):
    """What came of one act of the plan."""

    zone = serializers.CharField(help_text="Empty for the hub's own stream.")
    stream = serializers.CharField()
    segment = serializers.CharField(help_text="Its UUID.")
    first = serializers.IntegerField(help_text="Sequence of its first event ...")
    last = serializers.IntegerField(help_text="... and of its last.")
    action = serializers.ChoiceField(choices=("drop", "archive", "compact"))
    bytes = serializers.IntegerField(help_text="Stored bytes of the segment.")
    outcome = serializers.ChoiceField(choices=get_args(Done))
    why = serializers.CharField(
        help_text="Why it was refused, or is so already: `hold`, `needed`, `not_archived`, `open`,"
        " `no_archive`, `archive_damaged`, `archive_unavailable`, `archive_policy`, `gone`,"
        " `archived`; empty if it was done."
    )


class AppliedSerializer(Serializer):
    run = serializers.IntegerField()
    done = serializers.IntegerField()
    refused = serializers.IntegerField()
    unchanged = serializers.IntegerField(help_text="What the plan wants was so already.")
    left = serializers.IntegerField(
        help_text=f"Not looked at yet: a request ends after {limits.PLAN_APPLY_S_MAX:.0f} s; the"
        " next one goes on."
    )
    outcomes = OutcomeSerializer(
        many=True,
        help_text=f"At most {limits.PLAN_OUTCOMES_SHOWN_MAX}, refused ones first.",
    )


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
        applied = services.apply(
            env=read_env(),
            run=selectors.find_run(job=RETENTION.name, run=self.key),
            by=self.request.user.get_username(),
            course=Course(seconds=limits.PLAN_APPLY_S_MAX),
        )
        return applied.json()
