"""The demo's zone may call loopback only on a hub that nobody else can use."""

import pytest

from eventhub.supervisor import demo_receivers, port


@pytest.mark.parametrize(
    ("host", "embedded", "added"),
    [
        ("127.0.0.1", True, "default=127.0.0.0/8,default=::1"),
        ("::1", True, "default=127.0.0.0/8,default=::1"),
        ("127.0.0.1", False, "default=127.0.0.1:{}"),
        ("0.0.0.0", True, "default=127.0.0.1:{}"),
        ("::", True, "default=127.0.0.1:{}"),
    ],
)
def test_a_hub_that_others_can_use_may_call_the_demos_own_receiver_only(
    host: str, embedded: bool, added: str
) -> None:
    with port.listen(host, 0) as hub, port.listen("127.0.0.1", 0) as sink:
        loopback = demo_receivers.allows_loopback(hub, embedded=embedded)
        found = demo_receivers.allowed("10.0.0.0/8", sink, loopback=loopback)
        assert found == "10.0.0.0/8," + added.format(sink.getsockname()[1])
