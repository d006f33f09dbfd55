"""What a stream's policy may be, and what of it may change. Plain."""

from collections.abc import Mapping
from typing import Any

from eventhub import limits
from eventhub.errors import InvalidField
from eventhub.eventlog.errors import DurabilityFixed
from eventhub.eventlog.streams import StreamPolicy
from eventhub.streams.errors import KeyedFixed

# what a stream that is kept in memory alone cannot promise
_NOT_TRANSIENT = {
    "keyed": "its state would be lost with its events",
    "restate": "nothing of it is left at a start of the hub",
    "segment_events_max": "its one segment lasts as long as its memory",
    "segment_bytes_max": "its one segment lasts as long as its memory",
    "segment_age_s_max": "its one segment lasts as long as its memory",
    "retain_age_s": "its events go when newer ones need their place",
    "on_lag": "the oldest events make room for new ones, whoever waits for them",
    "hold": "nothing of it is stored, so nothing can be held",
    "archive": "nothing of it is stored, so nothing can be archived",
}
# how much of it is kept in memory
_TRANSIENT_MAX = {
    "retain_events": limits.TRANSIENT_EVENTS_MAX,
    "retain_bytes": limits.TRANSIENT_BYTES_MAX,
}


def new_policy(given: Mapping[str, Any]) -> StreamPolicy:
    """The policy of a new stream: what is given, for the rest the defaults. Raises InvalidField for
    what does not go together.
    """
    return _checked(StreamPolicy(**given))


def changed_policy(policy: StreamPolicy, given: Mapping[str, Any]) -> StreamPolicy:
    """The policy with what is given; None removes a limit. Raises DurabilityFixed, KeyedFixed,
    InvalidField.
    """
    changed = policy._replace(**given)
    if changed.durability != policy.durability:
        raise DurabilityFixed(field="durability", durability=policy.durability)
    if changed.keyed != policy.keyed:
        raise KeyedFixed(field="keyed", keyed=policy.keyed)
    return _checked(changed)


def _checked(policy: StreamPolicy) -> StreamPolicy:
    if policy.durability == "transient":
        for name, reason in _NOT_TRANSIENT.items():
            if getattr(policy, name) != StreamPolicy._field_defaults[name]:
                raise InvalidField(f"A transient stream has no such policy: {reason}.", field=name)
        for name, most in _TRANSIENT_MAX.items():
            if (getattr(policy, name) or 0) > most:
                raise InvalidField(f"A transient stream keeps at most {most}.", field=name)
    if policy.quench and policy.keyed:
        raise InvalidField(
            "The state of a key is its latest event, whether somebody wanted it then or not: a"
            " keyed stream is not quenched.",
            field="quench",
        )
    if policy.restate and not policy.keyed:
        raise InvalidField(
            "What is told again at a start is the latest event of each key: it needs `keyed`.",
            field="restate",
        )
    return policy
