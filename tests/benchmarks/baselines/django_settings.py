"""The settings of `django-admin startproject` without middleware; DEBUG off, PostgreSQL, channels
in memory.
"""

from psycopg.conninfo import conninfo_to_dict

from eventhub.base.env import read_env

_database = conninfo_to_dict(read_env().database_url)

DEBUG = False
SECRET_KEY = "only for benchmarks"
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "tests.benchmarks.baselines.django_urls"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
]
MIDDLEWARE: list[str] = []  # startproject's seven cost two thirds of it: harder to beat without
STATIC_URL = "static/"
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": _database.get("dbname"),
        "USER": _database.get("user"),
        "HOST": _database.get("host"),
    }
}
# Far above what is ever under way here: a full channel would drop messages, not slow the sender.
CHANNEL_LAYERS = {
    "default": {"BACKEND": "channels.layers.InMemoryChannelLayer", "CONFIG": {"capacity": 100_000}}
}
