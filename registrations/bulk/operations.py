"""The bulk door as the tables of doors want it: its path, what it takes and answers, its errors.
Django module.
"""

from eventhub.base import errors, limits
from eventhub.event.inbound import NDJSON
from eventhub.http.routes import ResponseSpec, Route, query_parameter
from registrations.bulk.route import bulk_door

_LINE = (
    'One JSON object per line: `{"op": "create", ...}` with the fields of a registration,'
    ' `{"op": "change", "id": 7, ...}` with those of a change, `{"op": "end", "id": 7}`; `key`'
    " instead of `id` names a registration by the client's own key."
)
_ANSWER = (
    "One JSON object per line, while the request goes on: a refused line by its number with its"
    " problem, and after each piece how far all is stored and what was done. The last one has"
    " `done`, or the `error` that ended the request."
)

BULK_DOORS: tuple[Route, ...] = (
    Route(
        method="POST",
        path="/v1/registrations/bulk",
        summary="Create, change and end many registrations",
        description=(
            f"Lines are stored in pieces of at most {limits.REGISTRATIONS_PER_REQUEST_MAX}, each in"
            " one transaction; a refused line keeps no other from being stored. API keys only."
        ),
        body={NDJSON: {"type": "string", "description": _LINE}},
        responses={
            "200": ResponseSpec(
                "Begun; what became of each line is in the lines.",
                {NDJSON: {"type": "string", "description": _ANSWER}},
            )
        },
        parameters=(
            query_parameter("client", "Whose they are; the key's own client if it is not given."),
            query_parameter("tickets", "Tell the ticket of each new registration.", type="boolean"),
        ),
        raises=(
            errors.InvalidField,
            errors.InvalidName,
            errors.FieldTooLong,
            errors.UnknownField,
            errors.Unauthenticated,
            errors.InvalidCredentials,
            errors.Forbidden,
            errors.NotFound,
            errors.RequestTimeout,
            errors.UnsupportedMediaType,
            errors.DatabaseUnavailable,
        ),
        handler=bulk_door,
    ),
)
