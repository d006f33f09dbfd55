"""The one rule of who may see an event."""

import pytest

from eventhub.access.grants import Grant
from eventhub.access.principal import Principal, is_shown
from eventhub.event.audience import may_see
from eventhub.event.envelope import Event

IN_OPS = frozenset({"ops", "night"})
KEY = Principal(1, "abcdefghijkm", 2, "c7", 3, "z", (Grant("listen", "*"),), None, groups=IN_OPS)


@pytest.mark.parametrize(
    ("destinations", "audience", "groups", "seen"),
    [
        ((), (), frozenset(), True),
        (("c7",), (), frozenset(), True),
        (("c8",), (), IN_OPS, False),
        (("c8", "c7"), (), frozenset(), True),
        ((), ("ops",), IN_OPS, True),
        ((), ("ops",), frozenset(), False),
        ((), ("ops",), frozenset({"dev"}), False),
        ((), ("dev", "night"), IN_OPS, True),
        ((), ("OPS", "op", "c7"), IN_OPS, False),
        (("c7",), ("ops",), IN_OPS, True),
        (("c7",), ("dev",), IN_OPS, False),
        (("c8",), ("ops",), IN_OPS, False),
    ],
)
def test_destinations_and_audience_must_both_let_a_client_through(
    destinations: tuple[str, ...], audience: tuple[str, ...], groups: frozenset[str], seen: bool
) -> None:
    event = Event("d", "t", {}, destinations=destinations, audience=audience)
    assert may_see(event, "c7", groups) is seen
    assert is_shown(event, KEY._replace(groups=groups)) is seen
    assert is_shown(event, None), "an operator"
    assert is_shown(event, KEY._replace(client_id=-5, client="operator:c7", groups=frozenset()))


@pytest.mark.parametrize(
    ("grants", "narrowed", "manages"),
    [
        ("manage:*", None, True),
        ("manage:orders", None, False),
        ("listen:*", None, False),
        ("manage:*", "manage:*", True),
        ("manage:*", "manage:orders", False),
        ("manage:*", "listen:*", False),
    ],
)
def test_a_manager_of_the_zone_may_manage_all_of_it(
    grants: str, narrowed: str | None, manages: bool
) -> None:
    token = None if narrowed is None else (Grant(*narrowed.split(":")),)
    key = KEY._replace(grants=(Grant(*grants.split(":")),), narrowed=token)
    assert key.manages_zone is manages


@pytest.mark.parametrize(
    ("destinations", "session", "seen"),
    [
        (("c7",), "a", True),
        (("c7/a",), "a", True),
        (("c7/a",), "b", False),
        (("c7/a",), "", False),  # a listener of the client
        (("c8/a",), "a", False),
        (("c7/b", "c7"), "a", True),
        ((), "a", True),
    ],
)
def test_a_destination_may_be_one_session_of_a_client(
    destinations: tuple[str, ...], session: str, seen: bool
) -> None:
    event = Event("d", "t", {}, destinations=destinations)
    assert may_see(event, "c7", frozenset(), session) is seen
