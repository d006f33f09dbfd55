"""The credentials of an endpoint: headers of its own, authentication and TLS certificates. They are
stored encrypted as JSON; beside them stands what may be shown. Plain module.
"""

from typing import Any

import orjson

from registrations.endpoints import certificates
from registrations.endpoints.secrets import Keyring

KINDS = ("headers", "authentication", "tls")
# The field of an authentication that is secret, by its type.
SECRET_FIELDS = {
    "basic": "password",
    "bearer": "token",
    "oauth2_client_credentials": "client_secret",
    "access_key": "secret_access_key",
}


def shown(kind: str, value: dict[str, Any], keyring: Keyring) -> Any:
    """Return what the API shows of a credential: instead of a secret the end of its digest, by
    which two can be compared.
    """
    if kind == "headers":
        return [{"name": name, "digest": keyring.digest(value[name])} for name in sorted(value)]
    if kind == "authentication":
        secret = SECRET_FIELDS[value["type"]]
        public = {name: one for name, one in value.items() if name != secret}
        return {**public, "digest": keyring.digest(value[secret])}
    own, ca = value["certificate"], value["ca"]
    return {
        "certificate": certificates.describe(own)[0] if own else None,
        "ca": certificates.describe(ca) if ca else [],
    }


def packed(value: dict[str, Any]) -> bytes:
    """Return the bytes of a credential to encrypt."""
    return orjson.dumps(value)


def unpacked(data: bytes) -> dict[str, Any]:
    """Return a credential of its decrypted bytes."""
    found: dict[str, Any] = orjson.loads(data)
    return found
