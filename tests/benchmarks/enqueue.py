"""The command `python -m tests.benchmarks.enqueue`: enqueues one task of the baseline per line of
standard input, each a JSON array of the delivery's key. It runs in a process of its own.
"""

import json
import sys

from tests.benchmarks.baselines.celery_tasks import app, deliver


def main() -> None:
    with app.producer_or_acquire() as producer:
        for line in sys.stdin:
            deliver.apply_async(json.loads(line), producer=producer, ignore_result=True)


if __name__ == "__main__":
    main()
