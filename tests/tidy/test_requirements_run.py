"""All imports of the hub's processes are in requirements.txt: the tests run with the development
packages, which may provide a distribution that a fresh machine lacks.
"""

import json
import re
import subprocess
import sys
from importlib.metadata import packages_distributions

from eventhub.supervisor.hub import HOME

IMPORTED = """
import django, json, sys
django.setup()
import eventhub.asgi, eventhub.celery, eventhub.web.console, eventhub.demo, eventhub.web.openapi
import eventhub.worker.beat, eventhub.web.server, eventhub.urls, eventhub.supervisor.hub
import celery.apps.worker, celery.beat, kombu.transport.redis
import delivery.forward.process, eventhub_client.remote, eventhub.eventlog.archive.archiver
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""
# tried by libraries, and done without
OPTIONAL = {
    *("certifi", "chardet", "charset_normalizer", "greenlet", "jinja2", "markupsafe"),
    *("opentelemetry", "pygments", "python_multipart", "requests", "rich", "urllib3"),
}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_imported_distribution_is_required() -> None:
    run = subprocess.run(
        [sys.executable, "-c", IMPORTED], cwd=HOME, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    required = set(re.findall(r"^([\w.-]+)==", (HOME / "requirements.txt").read_text(), re.M))
    known = {normal(name) for name in required} | {"eventhub", "eventhub-client"}
    brought_by = packages_distributions()
    imported = [name for name in json.loads(run.stdout) if name in brought_by]
    assert len(imported) > 20
    missing = [name for name in imported if not {normal(d) for d in brought_by[name]} & known]
    assert set(missing) <= OPTIONAL
