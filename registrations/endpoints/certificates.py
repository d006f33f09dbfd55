"""Client certificates and certificate authorities of endpoints (mutual TLS). Plain module."""

import os
import ssl
from datetime import UTC, datetime
from typing import Any

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)

_NO_CERTIFICATE = "This is not a list of certificates in PEM (-----BEGIN CERTIFICATE-----)."
_NO_NAMES = "The hub cannot read the names in a certificate; issue it again with names in UTF-8."
_NO_KEY = "This is not a private key in PEM without a password."
_OTHER_KEY = (
    "The hub does not support keys of this kind or curve; use RSA, Ed25519, or ECDSA with P-256,"
    " P-384 or P-521."
)


def read_certificates(pem: str, *, now: datetime | None = None) -> list[x509.Certificate]:
    """Return the certificates of a PEM text, of which the first is valid at present. Raises
    ValueError with a message for the client.
    """
    found = _parsed(pem)
    now = now or datetime.now(UTC)
    first = found[0]
    if first.not_valid_after_utc <= now:
        raise ValueError(f"The certificate expired on {first.not_valid_after_utc:%Y-%m-%d}.")
    if first.not_valid_before_utc > now:
        raise ValueError(f"The certificate is valid from {first.not_valid_before_utc:%Y-%m-%d} on.")
    return found


def check_private_key(certificate: x509.Certificate, pem: str) -> None:
    """Check that a key in PEM is that of the certificate. Raises ValueError with a message for the
    client.
    """
    try:
        key = load_pem_private_key(pem.encode(), password=None)
        own, expected = (_public_bytes(one) for one in (key.public_key(), certificate.public_key()))
    except UnsupportedAlgorithm:
        raise ValueError(_OTHER_KEY) from None
    except (ValueError, TypeError, AttributeError):
        raise ValueError(_NO_KEY) from None
    if own != expected:
        raise ValueError("The private key is not that of the certificate.")


def describe(pem: str) -> list[dict[str, Any]]:
    """Return what the API shows of each certificate of a PEM text. Raises ValueError with a message
    for the client.
    """
    try:
        return [
            {
                "subject": one.subject.rfc4514_string(),
                "issuer": one.issuer.rfc4514_string(),
                "serial_number": f"{one.serial_number:x}",
                "not_before": f"{one.not_valid_before_utc:%Y-%m-%dT%H:%M:%SZ}",
                "not_after": f"{one.not_valid_after_utc:%Y-%m-%dT%H:%M:%SZ}",
                "sha256": one.fingerprint(SHA256()).hex(),
            }
            for one in x509.load_pem_x509_certificates(pem.encode())
        ]
    except (ValueError, TypeError):
        raise ValueError(_NO_NAMES) from None


def tls_context(certificate: str, private_key: str, ca: str) -> ssl.SSLContext:
    """Return the TLS settings of an endpoint, of PEM texts that may be empty: its own authorities
    replace the public ones. Raises ValueError for what OpenSSL refuses.
    """
    own = "".join(one.public_bytes(Encoding.PEM).decode() for one in _parsed(ca)) if ca else None
    try:
        context = ssl.create_default_context(cadata=own)
        if certificate:
            _load_chain(context, f"{certificate.strip()}\n{private_key.strip()}\n".encode())
    except ssl.SSLError as error:
        raise ValueError(f"OpenSSL refuses the certificate: {error.reason}.") from None
    return context


def _parsed(pem: str) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(pem.encode())
    except (ValueError, x509.InvalidVersion):
        raise ValueError(_NO_CERTIFICATE) from None


def _load_chain(context: ssl.SSLContext, pem: bytes) -> None:
    """Load a certificate and its key. OpenSSL's function takes a path, so that the key is written
    into a file without a name that exists in memory only.
    """
    file = os.memfd_create("certificate", os.MFD_CLOEXEC)
    try:
        os.write(file, pem)
        context.load_cert_chain(f"/proc/self/fd/{file}")
    finally:
        os.close(file)


def _public_bytes(key: Any) -> bytes:
    return bytes(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))
