"""Bad input at the routes of timers."""

from collections.abc import Iterator

from tests.acceptance.bad_inputs import Bad

_TIMER = {"stream": "orders", "handle": "tick"}


def bad_requests() -> Iterator[Bad]:
    """Yield what is wrong at the routes of timers only."""
    route = path = "/v1/timers"
    for name, body, status, code, at in (
        ("no time", {}, 400, "missing_field", "at"),
        ("two times", {"after_s": 1, "every_s": 1}, 400, "invalid_field", "every_s"),
        ("no interval", {"every_s": 0}, 400, "invalid_field", "every_s"),
        ("no expression", {"cron": "hourly"}, 400, "invalid_field", "cron"),
        ("no time zone", {"cron": "* * * * *", "timezone": "x"}, 400, "invalid_field", "timezone"),
        ("far", {"at": "9999-01-01T00:00:00Z"}, 400, "invalid_field", "at"),
        ("never", {"every_s": 9, "end": "2020-01-01T00:00:00Z"}, 400, "invalid_field", "end"),
        ("no event", {"after_s": 1, "event": {"domain": "d"}}, 400, "missing_field", "event.type"),
        ("an id", {"after_s": 1, "event": {"domain": "d", "type": "t", "id": "x"}}, 400,
         "invalid_field", "event.id"),
        ("no stream", {"after_s": 1, "stream": "none"}, 404, "unknown_stream", None),
        ("the hub's own", {"after_s": 1, "stream": "system"}, 403, "forbidden", "stream"),
        ("no registration", {"after_s": 1, "registration": 999999}, 404, "unknown_registration",
         "registration"),
        ("a taken handle", {"after_s": 1, "handle": "taken"}, 409, "timer_exists", "handle"),
        ("another zone's client", {"after_s": 1, "client": "nobody"}, 404, "not_found", "client"),
    ):  # fmt: skip
        place = {} if at is None else {"field": at}
        yield Bad(name, f"POST {route}", path, status, code, place, {**_TIMER, **body})
    yield Bad("past its end", "PATCH /v1/timers/{timer}", "/v1/timers/<endedtimer>", 409,
              "timer_ended", {"field": "suspended"}, {"suspended": False})  # fmt: skip
    for method in ("GET", "PATCH", "DELETE"):
        body = {"suspended": True} if method == "PATCH" else None
        yield Bad("no such timer", f"{method} /v1/timers/{{timer}}", "/v1/timers/999999", 404,
                  "unknown_timer", {"field": "timer"}, body, method=method)  # fmt: skip
