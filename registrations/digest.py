"""Which registrations of a client ask for the same: the same events of the same streams, however it
was written. Plain module.
"""

from collections.abc import Iterable
from hashlib import blake2b
from uuid import UUID

from registrations.filters.normal import Form, in_order

_BYTES = 16


def written_form(form: Form) -> bytes:
    """Equal for equal normal forms alone."""
    found = []
    for alternative in in_order(form):
        found.append(b"|")
        for written, _ in alternative:
            text = written.encode()
            found.append(b"%d:%b" % (len(text), text))
    return b"".join(found)


def digest_of(client_id: int, stream_ids: Iterable[int], written: bytes) -> UUID:
    """Equal for equal clients, sets of streams and forms as they are written; else different, as
    good as surely.

    The client is in it, so that one look-up finds those of one client alone.
    """
    digest = blake2b(digest_size=_BYTES)
    for number in (client_id, *sorted(set(stream_ids))):
        digest.update(b"%d," % number)
    digest.update(written)
    return UUID(bytes=digest.digest())
