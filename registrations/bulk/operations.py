"""The specification of the bulk route: path, body, responses and errors. Django module."""

from eventhub.base import errors, limits
from eventhub.event.inbound import NDJSON
from eventhub.http.routes import SESSION, ResponseSpec, Route, query_parameter
from registrations.bulk.route import bulk_registrations

_LINE = (
    'One JSON object per line: `{"op": "create", ...}` with the fields of a registration,'
    ' `{"op": "change", "id": 7, ...}` with the fields of a change, `{"op": "end", "id": 7}`; `key`'
    " instead of `id` names a registration by the client's own key."
)
_ANSWER = (
    "One JSON object per line, sent during the request: each refused line with its number and"
    " problem, and after each batch the last stored line and the counts. The last object has"
    " `done`, or the `error` that ended the request."
)

BULK_ROUTES: tuple[Route, ...] = (
    Route(
        method="POST",
        path="/v1/registrations/bulk",
        summary="Create, change and end many registrations",
        description=(
            f"Lines are stored in batches of at most {limits.REGISTRATIONS_PER_REQUEST_MAX}, each"
            " in one transaction. A refused line does not affect the others. API keys only."
        ),
        body={NDJSON: {"type": "string", "description": _LINE}},
        responses={
            "200": ResponseSpec(
                "Started; the lines report the results.",
                {NDJSON: {"type": "string", "description": _ANSWER}},
            )
        },
        parameters=(
            query_parameter("client", "The client that owns them; by default the key's own."),
            query_parameter("ids", "Report the id of each new registration.", type="boolean"),
            SESSION,
        ),
        raises=(
            errors.InvalidField,
            errors.UnknownField,
            errors.Unauthenticated,
            errors.InvalidCredentials,
            errors.Forbidden,
            errors.NotFound,
            errors.RequestTimeout,
            errors.UnsupportedMediaType,
            errors.DatabaseUnavailable,
        ),
        handler=bulk_registrations,
    ),
)
