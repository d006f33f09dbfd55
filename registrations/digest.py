"""The digest of a registration, equal for equal filters in any language. Plain module."""

from collections.abc import Iterable
from hashlib import blake2b
from uuid import UUID

from registrations.filters.normal import NormalForm, printed_parts

_BYTES = 16


def written_form(form: NormalForm) -> bytes:
    """Return canonical bytes of a normal form: equal only for equal forms."""
    found = []
    for alternative in printed_parts(form):
        found.append(b"|")
        for written, _ in alternative:
            text = written.encode()
            found.append(b"%d:%b" % (len(text), text))
    return b"".join(found)


def digest_of(client_id: int, stream_ids: Iterable[int], written: bytes) -> UUID:
    """Return a digest of a client, its streams and the canonical bytes of its filter.

    It includes the client, so that one look-up finds the registrations of that client only.
    """
    digest = blake2b(digest_size=_BYTES)
    for number in (client_id, *sorted(set(stream_ids))):
        digest.update(b"%d," % number)
    digest.update(written)
    return UUID(bytes=digest.digest())
