"""Channel names of a zone: each is one bit of the mask."""

import pytest

from eventhub.access.models import Channel
from tests.integration.access_world import EVERYTHING, caller_with, refused
from tests.integration.eventhub.streams.test_streams_api import system_head

pytestmark = pytest.mark.django_db


@pytest.mark.req("EMC-19")
def test_a_channel_is_a_power_of_two() -> None:
    manager = caller_with(*EVERYTHING)
    problem = refused(manager.put("/v1/channels/odd", {"mask": 3}), 400, "not_power_of_two")
    assert problem["position"] == {"field": "mask"}
    assert not Channel.objects.exists()
    for name, mask, shown in (
        ("disk", 1, {"mask": "1", "bit": 0}),
        ("security", "4", {"mask": "4", "bit": 2}),
        ("last", 1 << 62, {"mask": str(1 << 62), "bit": 62}),
    ):
        made = manager.put(f"/v1/channels/{name}", {"mask": mask})
        channel = made.json()
        assert (made.status_code, channel.pop("changed")) == (201, system_head())
        assert channel == {"name": name, **shown, "deletes_at": None}
    names = [item["name"] for item in manager.get("/v1/channels").json()["items"]]
    assert names == ["disk", "security", "last", "default"]


def test_the_same_definition_again_changes_nothing() -> None:
    manager = caller_with(*EVERYTHING)
    assert manager.put("/v1/channels/disk", {"mask": 1}).status_code == 201
    assert manager.put("/v1/channels/disk", {"mask": "1"}).status_code == 200


@pytest.mark.parametrize("mask", [0, -1, -4, 3, 5, 6, 1 << 63, (1 << 64) - 1, "0", "3", "12"])
def test_what_is_no_power_of_two_below_the_default_bit_is_refused(mask: object) -> None:
    response = caller_with(*EVERYTHING).put("/v1/channels/disk", {"mask": mask})
    refused(response, 400, "not_power_of_two")


@pytest.mark.parametrize("mask", [1.0, True, None, [], ["disk"], {}, "", "0x4", "4 ", "-4", "４"])
def test_an_invalid_mask_is_refused(mask: object) -> None:
    response = caller_with(*EVERYTHING).put("/v1/channels/disk", {"mask": mask})
    assert response.json()["code"] in ("invalid_mask", "invalid_field")
    assert response.json()["position"] == {"field": "mask"}


@pytest.mark.parametrize(
    ("name", "mask", "field"),
    [("disk", 2, "mask"), ("other", 1, "mask"), ("default", 8, "name")],
)
def test_a_taken_name_or_bit_is_a_conflict(name: str, mask: int, field: str) -> None:
    manager = caller_with(*EVERYTHING)
    manager.put("/v1/channels/disk", {"mask": 1})
    problem = refused(manager.put(f"/v1/channels/{name}", {"mask": mask}), 409, "channel_conflict")
    assert problem["position"] == {"field": field}
