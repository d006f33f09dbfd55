"""The shares of clients and endpoints in the bytes of a claim."""

from typing import NamedTuple, cast

from delivery.callbacks.byte_shares import shares_of_bytes
from delivery.callbacks.claimed_groups import AnyClaim

KIB = 1024


class Due(NamedTuple):
    """A claim: its endpoint, the client, and the sizes of its events."""

    endpoint_id: int
    client: int
    sizes: list[int]


def shares(bytes_max: int, *claims: Due) -> list[int]:
    clients, sizes = [each.client for each in claims], [each.sizes for each in claims]
    return shares_of_bytes(cast(list[AnyClaim], claims), clients, sizes, bytes_max)


def test_everything_that_fits_is_posted() -> None:
    assert shares(100 * KIB, Due(1, 1, [KIB] * 50), Due(2, 2, [KIB] * 50)) == [50, 50]
    assert shares(100 * KIB) == []


def test_one_event_is_posted_however_large() -> None:
    assert shares(1, Due(1, 1, [KIB, KIB]), Due(2, 2, [KIB])) == [1, 0]


def test_a_small_event_does_not_wait_for_the_large_ones_of_another_client() -> None:
    """Events were read in the order of their segments, and those of newer streams were left."""
    large = Due(1, 1, [100 * KIB] * 50)
    assert shares(300 * KIB, large, Due(2, 2, [100])) == [3, 1]
    assert shares(300 * KIB, large, Due(2, 2, [10 * KIB] * 50)) == [2, 10]


def test_the_endpoints_of_a_client_share_its_part() -> None:
    many = [Due(endpoint, 1, [10 * KIB] * 20) for endpoint in (1, 2, 3)]
    *of_one, other = shares(150 * KIB, *many, Due(9, 2, [10 * KIB] * 20))
    assert (sum(of_one), other) == (8, 7)
    assert max(of_one) - min(of_one) <= 1


def test_what_one_does_not_need_is_left_to_others() -> None:
    claims = (Due(1, 1, [10 * KIB]), Due(1, 1, [KIB]), Due(2, 2, [10 * KIB] * 100))
    assert shares(100 * KIB, *claims) == [1, 1, 9]
