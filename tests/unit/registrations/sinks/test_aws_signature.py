"""Signatures of requests to S3, compared with those of AWS's own library."""

from datetime import UTC, datetime
from unittest import mock

import botocore.auth
import pytest
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from registrations.sinks.aws_signature import AccessKey, signed
from registrations.sinks.kind import SinkRequest

AT = "20261128T120000Z"
KEY = AccessKey("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "eu-north-1")


@pytest.mark.parametrize(
    ("method", "url", "headers", "body"),
    [
        ("GET", "https://bucket.s3.example/a/b.ndjson", {}, b""),
        ("PUT", "https://s3.example/bucket/a%20b/%C3%A9_1.gz", {"if-none-match": "*"}, b"body"),
        ("PUT", "http://127.0.0.1:9000/bucket/x", {"content-type": "text/plain"}, b"\x00\xff"),
        ("GET", "https://s3.example/~me/-.x", {}, b""),
    ],
)
def test_signatures_are_those_of_botocore(
    method: str, url: str, headers: dict[str, str], body: bytes
) -> None:
    request = AWSRequest(method, url, headers=headers, data=body)
    signer = botocore.auth.S3SigV4Auth(Credentials(KEY.id, KEY.secret), "s3", KEY.region)
    at = datetime(2026, 11, 28, 12, tzinfo=UTC)
    with mock.patch("botocore.auth.get_current_datetime", return_value=at.replace(tzinfo=None)):
        signer.add_auth(request)
    found = signed(KEY, SinkRequest(method, url, headers, body, 0), AT)
    assert found.headers["authorization"] == request.headers["Authorization"]
