"""An S3 server of its own, which verifies signatures, for the tests of sinks."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import boto3
import requests
from moto.server import ThreadedMotoServer

REGION = "eu-north-1"
_ALLOWED = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
_POLICY = json.dumps({"Version": "2012-10-17", "Statement": [_ALLOWED]})


class Bucket(NamedTuple):
    """A bucket, the key of a user who may use it, and a client of the tests that reads it."""

    url: str
    authentication: dict[str, str]
    name: str
    s3: Any

    def objects(self) -> dict[str, bytes]:
        """Return the objects by their keys."""
        found = self.s3.list_objects_v2(Bucket=self.name).get("Contents", [])
        return {
            each["Key"]: self.s3.get_object(Bucket=self.name, Key=each["Key"])["Body"].read()
            for each in found
            if not each["Key"].endswith("_eventhub_check")
        }


class S3Server:
    """The running server."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._count = 0
        self._auth_after(1_000_000)
        requests.post(f"{url}/moto-api/reset", timeout=10)  # of a server before in this process
        given = {"region_name": REGION, "endpoint_url": url}
        first = {"aws_access_key_id": "first", "aws_secret_access_key": "first", **given}
        iam = boto3.client("iam", **first)
        iam.create_user(UserName="hub")
        iam.put_user_policy(UserName="hub", PolicyName="all", PolicyDocument=_POLICY)
        key = iam.create_access_key(UserName="hub")["AccessKey"]
        self.authentication = {
            "type": "access_key",
            "access_key_id": key["AccessKeyId"],
            "secret_access_key": key["SecretAccessKey"],
        }
        self._s3 = boto3.client(
            "s3",
            aws_access_key_id=key["AccessKeyId"],
            aws_secret_access_key=key["SecretAccessKey"],
            **given,
        )
        self._auth_after(0)

    def _auth_after(self, calls: int) -> None:
        """Verify signatures after so many calls."""
        requests.post(f"{self.url}/moto-api/reset-auth", data=str(calls), timeout=10)

    def bucket(self) -> Bucket:
        """Create a bucket."""
        self._count += 1
        name = f"events-{self._count}"
        self._s3.create_bucket(
            Bucket=name, CreateBucketConfiguration={"LocationConstraint": REGION}
        )
        return Bucket(f"{self.url}/{name}", self.authentication, name, self._s3)


@contextmanager
def s3_server() -> Iterator[S3Server]:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield S3Server(f"http://{host}:{port}")
    finally:
        server.stop()
