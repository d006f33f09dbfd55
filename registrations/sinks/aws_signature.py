"""Signatures of requests to S3: AWS Signature Version 4, with the body's digest. Plain module.

https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
"""

import hmac
from hashlib import sha256
from typing import NamedTuple
from urllib.parse import urlsplit

from registrations.sinks.kind import SinkRequest


class AccessKey(NamedTuple):
    """The key of a client at a server, and the region for which requests are signed."""

    id: str
    secret: str
    region: str


def signed(key: AccessKey, given: SinkRequest, at: str) -> SinkRequest:
    """Return a request with its signature. Its URL is percent-encoded and has no query, its headers
    have names in lower case. `at`: the time as `20261128T120000Z`.
    """
    parts = urlsplit(given.url)
    digest = sha256(given.body).hexdigest()
    own = {"host": parts.netloc, "x-amz-content-sha256": digest, "x-amz-date": at, **given.headers}
    names = ";".join(sorted(own))
    lines = "".join(f"{name}:{own[name].strip()}\n" for name in sorted(own))
    request = f"{given.method}\n{parts.path or '/'}\n\n{lines}\n{names}\n{digest}"
    scope = f"{at[:8]}/{key.region}/s3/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{at}\n{scope}\n{sha256(request.encode()).hexdigest()}"
    secret = f"AWS4{key.secret}".encode()
    for part in scope.split("/"):
        secret = hmac.digest(secret, part.encode(), "sha256")
    signature = hmac.digest(secret, text.encode(), "sha256").hex()
    authorization = (
        f"AWS4-HMAC-SHA256 Credential={key.id}/{scope}, SignedHeaders={names}, "
        f"Signature={signature}"
    )
    return given._replace(headers={**own, "authorization": authorization})
