"""Gates: the domain, type and application of an event, which are compared before its pairs.
Plain module.

A spec has one gate. An event passes several: with each of its applications, and with None (any) in
place of each part.
"""

from eventhub.event.envelope import Event
from registrations.matching.spec import Spec

GateKey = tuple[str | None, str | None, str | None]  # domain, type, application; None: any


def gate_of(spec: Spec) -> GateKey:
    return spec.domain, spec.type, spec.application


def gates_of(event: Event) -> list[GateKey]:
    """Return the gates of all specs that the event may match, each once."""
    domain, type = event.domain, event.type
    gates: list[GateKey] = [
        (domain, type, None),
        (domain, None, None),
        (None, type, None),
        (None, None, None),
    ]
    if event.application:
        for application in dict.fromkeys(event.application):
            gates += [(*gate[:2], application) for gate in gates[:4]]
    return gates
