"""The usual way: one Celery task per delivery, as a project would write it. The task reads what it
needs, posts over a persistent connection, signs, and writes state and attempt in one transaction.

Run as `python -m celery -A tests.benchmarks.baselines.celery_tasks worker`.
"""

import hashlib
import hmac
import http.client
import os
import threading
import time
from base64 import b64encode
from typing import Any
from urllib.parse import urlsplit

import psycopg
from celery import Celery

from eventhub.base.broker import broker_url
from eventhub.event.json_codec import event_json
from eventhub.event.protobuf_codec import decode

SECRET = bytes(range(32))
app = Celery("baseline", broker=broker_url(os.environ.get("REDIS_URL", "")))
app.conf.update(
    task_ignore_result=True,
    task_default_queue="baseline",
    worker_prefetch_multiplier=64,
    broker_connection_retry_on_startup=True,
)
_here = threading.local()

READ = """
SELECT e.url, v.payload, g.uuid::text, s.name, d.registrations
  FROM deliveries d JOIN endpoints e ON e.id = d.endpoint_id
  JOIN events v ON v.partition_id = d.partition_id AND v.segment_id = d.segment_id
               AND v.sequence = d.sequence
  JOIN segments g ON g.id = d.segment_id JOIN streams s ON s.id = d.stream_id
 WHERE d.partition_id = %s AND d.endpoint_id = %s AND d.segment_id = %s AND d.sequence = %s
"""
WRITE = """
UPDATE deliveries SET state = 'delivered', attempts = attempts + 1, finished_at = now()
 WHERE partition_id = %s AND endpoint_id = %s AND segment_id = %s AND sequence = %s
"""
KEEP = """
INSERT INTO attempts (attempted_at, partition_id, endpoint_id, segment_id, sequence, number,
                      outcome, status,
                      duration_ms, url, request, response)
VALUES (now(), %s, %s, %s, %s, 1, 'delivered', %s, %s, %s, %s, %s)
"""


@app.task(  # type: ignore[untyped-decorator]
    name="baseline.deliver",
    autoretry_for=(OSError, http.client.HTTPException),
    retry_backoff=True,
)
def deliver(*key: int) -> None:
    connection = _database()
    row = connection.execute(READ, key).fetchone()
    assert row is not None
    url, payload, segment, stream, registrations = row
    event = event_json(decode(payload)).decode()
    body = (
        f'{{"stream":"{stream}","segment":"{segment}","sequence":{key[3]},'
        f'"registrations":{registrations},"event":{event}}}'
    ).encode()
    began_s = time.monotonic()
    status, headers = _post(url, f"msg_{segment}_{key[3]}_{key[1]}", body)
    duration_ms = int((time.monotonic() - began_s) * 1000)
    with connection.transaction():
        connection.execute(WRITE, key)
        connection.execute(KEEP, (*key, status, duration_ms, url, "", headers))


def _post(url: str, message: str, body: bytes) -> tuple[int, str]:
    parts = urlsplit(url)
    timestamp = str(int(time.time()))
    signed = f"{message}.{timestamp}.".encode() + body
    signature = b64encode(hmac.new(SECRET, signed, hashlib.sha256).digest()).decode()
    headers = {
        "content-type": "application/json",
        "webhook-id": message,
        "webhook-timestamp": timestamp,
        "webhook-signature": f"v1,{signature}",
    }
    connection = _http(parts.netloc)
    try:
        connection.request("POST", parts.path, body, headers)
        answer = connection.getresponse()
        answer.read()
    except BaseException:
        connection.close()  # or every later request on it would fail too
        raise
    return answer.status, str(answer.headers)


def _database() -> psycopg.Connection[Any]:
    if not hasattr(_here, "database"):
        url = os.environ["DATABASE_URL"]
        _here.database = psycopg.connect(url, autocommit=True, prepare_threshold=0)
    found: psycopg.Connection[Any] = _here.database
    return found


def _http(host: str) -> http.client.HTTPConnection:
    if not hasattr(_here, "http"):
        _here.http = {}
    if host not in _here.http:
        _here.http[host] = http.client.HTTPConnection(host, timeout=15)
    found: http.client.HTTPConnection = _here.http[host]
    return found
