"""A registration's compiled, immutable form: what an event must have, in one conjunction. Plain.

It knows nothing of tickets, streams or clients: a matcher gives each spec a number of its caller's.
"""

from typing import NamedTuple

from registrations.lang.pairs import Pairs, Scalar


class Spec(NamedTuple):
    """A domain, a type and an application (None: any) and pairs of a path and a value, all of which
    must hold.

    Two specs that ask for the same may differ as tuples (the order of pairs, 1 and 1.0); and in
    Python `1 == True`, so specs are compared through `registrations.match.atoms.atoms_of`.
    """

    domain: str | None = None
    type: str | None = None
    pairs: tuple[tuple[str, Scalar], ...] = ()
    application: str | None = None


def spec_of(pairs: Pairs) -> Spec:
    """The spec of a registration in the pairs language."""
    return Spec(pairs.domain, pairs.type, pairs.attributes, pairs.application)
