"""All bad inputs together: no route is left out, there are many, they are of many kinds, and what
they are tried on stays as it was.
"""

import pytest

from eventhub.base import errors
from eventhub.web import openapi
from eventhub.web.openapi import all_errors
from tests.acceptance.bad_inputs import EVENT, World, routes
from tests.acceptance.eventhub.api import (
    test_bad_inputs_audit,
    test_bad_inputs_emit,
    test_bad_inputs_explain,
    test_bad_inputs_groups,
    test_bad_inputs_interest,
    test_bad_inputs_jobs,
    test_bad_inputs_listen,
    test_bad_inputs_management,
    test_bad_inputs_open,
    test_bad_inputs_operators,
    test_bad_inputs_plans,
    test_bad_inputs_queries,
    test_bad_inputs_registrations,
    test_bad_inputs_sessions,
    test_bad_inputs_socket,
    test_bad_inputs_types,
    test_bad_inputs_wire,
)

CASES = (
    *test_bad_inputs_audit.CASES,
    *test_bad_inputs_emit.CASES,
    *test_bad_inputs_groups.CASES,
    *test_bad_inputs_jobs.CASES,
    *test_bad_inputs_interest.CASES,
    *test_bad_inputs_listen.CASES,
    *test_bad_inputs_management.CASES,
    *test_bad_inputs_open.CASES,
    *test_bad_inputs_operators.CASES,
    *test_bad_inputs_plans.CASES,
    *test_bad_inputs_queries.CASES,
    *test_bad_inputs_registrations.CASES,
    *test_bad_inputs_sessions.CASES,
    *test_bad_inputs_socket.HANDSHAKES,
    *test_bad_inputs_socket.MESSAGES,
    *test_bad_inputs_types.CASES,
    *test_bad_inputs_explain.CASES,
    *test_bad_inputs_wire.CASES,
)
# What a caller cannot bring about by one bad request: the hub's own troubles, and what takes more.
NOT_TRIED = {
    "internal",
    "unavailable",
    "nothing_to_index",  # see test_match_index.py
    "match_index_not_used",  # a stream that changed while a builder began
    "match_index_outdated",  # a builder came before another one
    "database_unavailable",
    "outcome_unknown",
    "overloaded",
    "log_hole",
    "storage_full",  # a full disk: see test_full_disk.py
    "transient_unavailable",  # Redis is away
    "archive_unavailable",  # and what happens to files: see test_archive.py
    "archive_damaged",
    "archive_conflict",
    "segment_unreadable",
    "type_too_costly",  # see test_types.py
    "transient_stream",  # see test_recipients.py
    "immutable_property",  # see test_types.py
    "signature_mismatch",  # see test_registration_reports.py
    "stream_deleting",  # see test_stream_deletion.py
    "stream_deleted",
    "on_hold",
    "type_deleting",  # see test_definition_deletion.py
    "type_in_use",
    "zone_deleting",  # see test_zone_deletion.py
    "limit_reached",  # 100 keys, 10,000 clients or streams
    "too_many_requests",  # see test_one_listen_too_many
    "state_unavailable",  # of a group that consumes much: see test_pattern_waiting.py
    "rate_limited",  # see test_tenant_limits.py
    "zone_storage_full",
    "sockets_limited",  # see test_tenant_sockets.py
    "endpoint_unverified",  # see test_endpoint_handshakes.py
    "credentials_unreadable",  # of a former secret key: see test_endpoint_credentials.py
    "delivery_in_progress",  # a worker posts it: see test_resend.py
    "delivery_state",  # likewise
    "replay_state",  # see test_replay.py
    "listener_exists",  # see test_listen_of_a_name_that_is_taken
    "match_index_damaged",  # no route reads one
    "match_index_absent",
    "match_index_refused",
    "match_index_disk_full",  # of a build: see test_index_builds.py
    "match_index_read_only",
    "match_index_obstructed",
    "match_index_not_written",
    "database_busy",  # all connections of a process are taken
    "java_slow",
    "spark_conf",
    "no_java",  # reasons of runs that failed: see test_jobs_execute.py
    "spark",
    "local",
    "bad_result",
    "result_too_large",
    "history_too_large",
    "inputs_not_written",  # see test_job_inputs.py
    "run_under_way",  # of the command
    "run_over",  # see test_jobs.py
    "run_publishing",  # likewise
    "result_deleted",  # likewise
    "result_elsewhere",  # likewise
    "no_plan",  # of a run that left none: see test_retention_apply.py
    "too_many_runs",
    "redis_off",  # see test_without_redis.py
    "interest_exists",  # see test_interest_of_a_name_that_is_taken
    "session_connected",  # see test_session_delivery.py
    "session_disconnected",  # likewise
    "sequence_ahead",  # see test_session_acknowledgements.py
    "sequences_required",  # likewise
    "acknowledgements_full",  # likewise
    "session_not_reliable",  # see test_session_pull.py
    "session_replaced",  # likewise
}


def test_no_route_is_without_a_bad_input() -> None:
    assert routes() - {case.route for case in CASES} == set()


def test_every_case_names_a_route_that_exists() -> None:
    assert {case.route for case in CASES} - routes() == set()


def test_there_are_enough_bad_inputs_of_enough_kinds() -> None:
    assert len(CASES) >= 100
    assert len({case.code for case in CASES}) >= 20


def test_every_refusal_is_in_the_openapi_document() -> None:
    paths = openapi.document()["paths"]
    missing = set()
    for case in CASES:
        method, path = case.route.split(" ", 1)
        method = (getattr(case, "method", "") or method).lower()
        if path in paths and case.status != 405:
            answers = paths[path][method]["responses"]
            described = answers.get(str(case.status), answers.get(case.status, {}))
            if f"`{case.code}`" not in described.get("description", ""):
                missing.add(f"{method} {path} {case.status} {case.code}")
    assert missing == set()


def test_every_error_that_a_request_can_cause_is_tried() -> None:
    codes = {error.code for error in all_errors()} - NOT_TRIED
    assert codes - {case.code for case in CASES} == set()
    assert {case.code for case in CASES} & NOT_TRIED == set()
    assert issubclass(errors.LogHole, errors.EventHubError)


@pytest.mark.parametrize("write", ["event", "stream", "channel", "key"])
def test_the_digest_sees_every_write(world: World, write: str) -> None:
    """Otherwise its staying the same would prove nothing."""
    before = world.digest()
    zone = world.hub.new_zone() if write != "key" else world.other
    match write:
        case "event":
            before = world.digest()
            assert world.zone.emit("orders", EVENT).status == 200
        case "stream":
            zone.create_stream("more")
        case "channel":
            zone.define_channel("more", 1)
        case "key":
            zone.key("emit:*")
    assert world.digest() != before
