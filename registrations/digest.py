"""Which registrations of a client ask for the same: the same events of the same streams, however it
was written. Plain.
"""

from collections.abc import Iterable
from hashlib import blake2b
from uuid import UUID

from registrations.lang.normal import Form, in_order

_BYTES = 16


def digest_of(client_id: int, stream_ids: Iterable[int], form: Form) -> UUID:
    """Equal for equal clients, sets of streams and normal forms; else different, as good as surely.

    The client is in it, so that one look-up finds those of one client alone.
    """
    digest = blake2b(digest_size=_BYTES)
    for number in (client_id, *sorted(set(stream_ids))):
        digest.update(b"%d," % number)
    for alternative in in_order(form):
        digest.update(b"|")
        for written, _ in alternative:
            text = written.encode()
            digest.update(b"%d:%b" % (len(text), text))
    return UUID(bytes=digest.digest())
