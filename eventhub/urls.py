"""Django's routes: the management API under /v1, its documentation, and the console. Django module.

The hot routes never reach Django.
"""

from django.contrib import admin
from django.urls import include, path

from eventhub.api import back_office
from eventhub.api.resource import CHANGE_AND_DELETE, DELETE, LIST, LIST_AND_CREATE, ONE, PUT
from eventhub.applications.api import ApplicationGroups
from eventhub.monitoring.api import Members, ZoneMonitoring
from eventhub.streams import api as streams_api
from eventhub.streams.audit_api import AuditedActs
from eventhub.web import asyncapi, console, openapi
from registrations import api as registrations_api
from registrations.endpoints.api import Endpoints, VerifiedEndpoint
from registrations.endpoints.secrets_api import EndpointSecrets
from registrations.groups.api import RegistrationGroups
from registrations.match_index.builds import api as index_api
from registrations.pattern_groups.api import PatternGroups
from registrations.sessions.api import (
    SessionClaims,
    SessionGroupClaims,
    SessionGroupPositions,
    SessionGroups,
    SessionPositions,
    Sessions,
)
from registrations.timers.api import RegistrationTimers

admin.autodiscover()

urlpatterns = [
    path("v1/boot", streams_api.HubStarts.as_view(ONE)),
    path("v1/audit", AuditedActs.as_view(LIST)),
    path("v1/audit/<str:sequence>", AuditedActs.as_view(ONE)),
    path("v1/storage", streams_api.StorageUse.as_view(PUT)),
    path("v1/streams", include("eventhub.streams.urls")),
    path(
        "v1/streams/<str:stream>/match-index",
        index_api.MatchIndex.as_view({"get": "retrieve", "post": "create"}),
    ),
    path("v1/types", include("eventhub.types.urls")),
    path("v1/applications", include("eventhub.applications.urls")),
    path("v1/application-groups", ApplicationGroups.as_view(LIST)),
    path(
        "v1/application-groups/<str:application_group>",
        ApplicationGroups.as_view({**PUT, **DELETE}),
    ),
    path("v1/members", Members.as_view(LIST)),
    path("v1/monitoring", ZoneMonitoring.as_view({**ONE, "patch": "partial_update"})),
    path("v1/languages", registrations_api.Languages.as_view(LIST)),
    path("v1/filters", include("registrations.explain.urls")),
    path("v1/registrations", include("registrations.urls")),
    path("v1/sources", include("registrations.sources.urls")),
    path("v1/connectors", include("registrations.connectors.urls")),
    path("v1/timers", include("registrations.timers.urls")),
    path("v1/pattern-groups", PatternGroups.as_view(LIST_AND_CREATE)),
    path("v1/pattern-groups/<str:pattern_group>", PatternGroups.as_view(CHANGE_AND_DELETE)),
    path("v1/patterns", include("registrations.pattern_groups.urls")),
    path(
        "v1/registrations/<str:registration>/timers/<str:handle>",
        RegistrationTimers.as_view(CHANGE_AND_DELETE),
    ),
    path("v1/registration-groups", RegistrationGroups.as_view(LIST_AND_CREATE)),
    path("v1/registration-groups/<str:group>", RegistrationGroups.as_view(CHANGE_AND_DELETE)),
    path("v1/sessions", Sessions.as_view(LIST_AND_CREATE)),
    path("v1/sessions/<str:session>", Sessions.as_view(CHANGE_AND_DELETE)),
    path("v1/sessions/<str:session>/positions", SessionPositions.as_view(LIST)),
    path("v1/sessions/<str:session>/claims", SessionClaims.as_view(LIST)),
    path("v1/session-groups", SessionGroups.as_view(LIST_AND_CREATE)),
    path("v1/session-groups/<str:session_group>", SessionGroups.as_view(CHANGE_AND_DELETE)),
    path("v1/session-groups/<str:session_group>/positions", SessionGroupPositions.as_view(LIST)),
    path("v1/session-groups/<str:session_group>/claims", SessionGroupClaims.as_view(LIST)),
    path("v1/endpoints", Endpoints.as_view(LIST_AND_CREATE)),
    path("v1/endpoints/<str:endpoint>", Endpoints.as_view(CHANGE_AND_DELETE)),
    path("v1/endpoints/<str:endpoint>/verify", VerifiedEndpoint.as_view({"post": "create"})),
    path("v1/endpoints/<str:endpoint>/secrets", EndpointSecrets.as_view(LIST_AND_CREATE)),
    path("v1/endpoints/<str:endpoint>/secrets/<str:secret>", EndpointSecrets.as_view(DELETE)),
    path("v1/", include("delivery.urls")),
    path("v1/jobs", include("sparkjobs.runs.urls")),
    path("v1/", include("eventhub.accounts.urls")),
    path("docs/openapi.json", openapi.openapi_json),
    path("docs/asyncapi.json", asyncapi.asyncapi_json),
    path("docs/api", openapi.api_page),
    path("docs/errors", openapi.errors_page),
    path("admin/", admin.site.urls),
    path("static/admin/<path:path>", back_office.static_file),
    path("", console.home),
    path("console", console.home),
    path("console/", console.page),
    path("console/<path:path>", console.file_or_page),
]

handler400 = handler403 = handler404 = handler500 = "eventhub.api.problems.problem"
