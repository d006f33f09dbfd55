"""Times one message after the other from its publication to a JetStream to its receipt from a push
consumer, which is after it was stored. Plain.
"""

import asyncio
from array import array

from tests.benchmarks.load.http import HOST, now_ns, percentiles_ms
from tests.benchmarks.load.jobs import NatsLatencyJob
from tests.benchmarks.load.nats import NatsConnection

_STREAM = "timed"
_SUBJECT = "timed.one"
_DELIVER = "deliver.timed"


async def run(job: NatsLatencyJob) -> dict[str, float]:
    """Return the percentiles of the receipts."""
    loop = asyncio.get_running_loop()
    failed: asyncio.Future[None] = loop.create_future()
    stored: asyncio.Queue[int] = asyncio.Queue()  # when each message was acknowledged ...
    arrived: asyncio.Queue[int] = asyncio.Queue()  # ... and received

    def fail(error: Exception) -> None:
        if not failed.done():
            failed.set_exception(error)

    async def connected(noted: "asyncio.Queue[int]") -> NatsConnection:
        _, connection = await loop.create_connection(
            lambda: NatsConnection(lambda *_: noted.put_nowait(now_ns()), fail),
            HOST,
            job.target.port,
        )
        return connection

    producer, consumer = await connected(stored), await connected(arrived)
    stream = {"name": _STREAM, "subjects": [_SUBJECT], "storage": "file"}
    await producer.ask(f"$JS.API.STREAM.CREATE.{_STREAM}", stream)
    consumer.subscribe(_DELIVER, 1)
    config = {"deliver_subject": _DELIVER, "deliver_policy": "new", "ack_policy": "none"}
    request = {"stream_name": _STREAM, "config": config}
    await consumer.ask(f"$JS.API.CONSUMER.CREATE.{_STREAM}", request)
    producer.subscribe("acknowledged", 1)
    message = producer.publish(_SUBJECT, job.body.encode(), "acknowledged")
    took = array("q")
    warmup = max(job.samples // 10, 1)
    for sample in range(warmup + job.samples):
        if sample == warmup:
            del took[:]
        began_ns = now_ns()
        producer.transport.write(message)
        both = asyncio.gather(arrived.get(), stored.get())
        await asyncio.wait({both, failed}, return_when=asyncio.FIRST_COMPLETED)
        if failed.done():
            failed.result()
        took.append(both.result()[0] - began_ns)
    return percentiles_ms(took)
