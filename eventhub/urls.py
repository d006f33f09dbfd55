"""Django's routes: the management API under /v1 and its documentation; the hot doors never reach
Django.
"""

from django.urls import include, path

urlpatterns = [
    path("v1/", include("eventhub.access.urls")),
]

handler400 = "eventhub.access.problems.bad_request"
handler403 = "eventhub.access.problems.permission_denied"
handler404 = "eventhub.access.problems.not_found"
handler500 = "eventhub.access.problems.server_error"
