"""Django's settings. SQL module.

An operator's settings come from the environment (eventhub/base/env.py, docs/settings.md).
"""

from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

from eventhub.base import limits, logs
from eventhub.base.env import require_env
from eventhub.base.version import VERSION

ENV = require_env()

DEBUG = ENV.debug
SECRET_KEY = ENV.secret_key or "unset: manage.py up generates one, see docs/settings.md"
SECRET_KEY_FALLBACKS = list(ENV.secret_key_fallbacks)
ALLOWED_HOSTS = list(ENV.allowed_hosts)
ROOT_URLCONF = "eventhub.urls"
ASGI_APPLICATION = "eventhub.asgi.application"
USE_TZ = True
TIME_ZONE = "UTC"
USE_I18N = False  # one language, and the hub's format of times
DATETIME_FORMAT = "Y-m-d H:i:s"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
STATIC_URL = "/static/"
APPEND_SLASH = False
X_FRAME_OPTIONS = "DENY"
SECURE_CONTENT_TYPE_NOSNIFF = True
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_TRUSTED_ORIGINS = list(ENV.origins)
# if every browser uses TLS, the login is never sent without it
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = bool(ENV.origins) and all(
    origin.startswith("https://") for origin in ENV.origins
)
LOGGING_CONFIG = None
logs.configure(ENV.log_format, ENV.log_level)

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "rest_framework",
    "drf_spectacular",
    "channels",
    "eventhub.eventlog",
    "eventhub.access",
    "eventhub.accounts",
    "eventhub.streams",
    "eventhub.types",
    "eventhub.applications",
    "eventhub.sessions",
    "eventhub.monitoring",
    "registrations",
    "registrations.sources",
    "registrations.connectors",
    "registrations.timers",
    "registrations.pattern_groups",
    "delivery",
    "sparkjobs.runs",
    "eventhub.apps.EventHubConfig",
    "eventhub.apps.BackOfficeConfig",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "DIRS": [Path(__file__).parent / "api" / "templates"],  # of the back office
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]


def _database(url: str) -> dict[str, object]:
    """Convert a libpq URL to Django's form, with a pool, because under ASGI each request has its
    own thread. A process stopped in the middle of a change must not hold the locks of heads.
    """
    parts = {name: str(value) for name, value in conninfo_to_dict(url).items()}
    idle = f"-c idle_in_transaction_session_timeout={limits.TRANSACTION_IDLE_S_MAX}s"
    parts["options"] = f"{parts.get('options', '')} {idle}".strip()
    name = parts.pop("dbname", "eventhub")
    return {
        "ENGINE": "eventhub.postgresql",
        "NAME": name,
        "USER": parts.pop("user", ""),
        "PASSWORD": parts.pop("password", ""),
        "HOST": parts.pop("host", ""),
        "PORT": parts.pop("port", ""),
        # attempts to connect end before callers time out, so that the first caller after an outage
        # starts a new attempt at once
        "OPTIONS": {
            "application_name": "eventhub django",
            **parts,
            "pool": {"min_size": 0, "max_size": 4, "timeout": 5, "reconnect_timeout": 4},
        },
    }


DATABASES = {"default": _database(ENV.database_url)}
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
PASSWORD_RESET_TIMEOUT = limits.OPERATOR_SETUP_S_MAX  # of an operator's set-up token

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "eventhub.access.authentication.KeyAuthentication",
        "eventhub.access.authentication.OperatorAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["eventhub.api.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["eventhub.api.json.FastJSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["eventhub.api.json.StrictJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "eventhub.api.schema.AutoSchema",
    "EXCEPTION_HANDLER": "eventhub.api.problems.exception_handler",
    "UNAUTHENTICATED_USER": None,
}

SPECTACULAR_SETTINGS = {
    "TITLE": "EventHub",
    "DESCRIPTION": (
        "Emit events, listen from a cursor, read and put the state of keys; manage zones, clients,"
        " keys, channels, streams, types, registrations, endpoints, deliveries and storage. Every"
        " reply has the last event of the stream that it is about, `system` for most, in"
        " `EventHub-Sequence` and `EventHub-Segment`. A change has the events that it caused in"
        " `EventHub-Caused`, and accepts `EventHub-Action` and `If-Match`. A request with"
        " `EventHub-Session` acts through that session of its client."
    ),
    "VERSION": VERSION,
    "LICENSE": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
    "SERVERS": [{"url": "/", "description": "The hub that served this document."}],
    "OAS_VERSION": "3.1.0",  # the routes' schemas are JSON Schema 2020-12
    "SERVE_INCLUDE_SCHEMA": False,
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "GET_LIB_DOC_EXCLUDES": "eventhub.api.serializers.undocumented",
    "POSTPROCESSING_HOOKS": ["eventhub.web.openapi.add_routes"],
}
