"""Django settings, composed from the one typed configuration. Nothing else in the project reads the environment."""

from __future__ import annotations

import os
import sys
from datetime import timedelta
from functools import partial

import django_stubs_ext

from victoryline import admin_theme, configuration
from victoryline.databases import databases
from victoryline.lib.files import EmptySecretError, read_or_create
from victoryline.lib.logs import logging_config

django_stubs_ext.monkeypatch()

try:
    CONFIG = configuration.load(os.environ)
except configuration.ConfigError as error:
    sys.exit(str(error))


LOAD_CONFIG = partial(configuration.load, os.environ)  # reads the file again: scraping.configuration.policies.reload

BASE_DIR = configuration.PROJECT_ROOT
VAR_DIR = CONFIG.var_dir
VAR_DIR.mkdir(parents=True, exist_ok=True)

JWT_PREVIOUS_KEYS = CONFIG.jwt_previous_keys
try:
    SECRET_KEY = CONFIG.secret_key or read_or_create(VAR_DIR / "secret_key")
    JWT_SIGNING_KEY = CONFIG.jwt_signing_key or read_or_create(VAR_DIR / "jwt_signing_key")
except EmptySecretError as error:
    sys.exit(str(error))
DEBUG = False
ALLOWED_HOSTS = list(CONFIG.allowed_hosts)

INSTALLED_APPS = [
    "django_otp",  # before victoryline, whose admin removes its pages
    "django_otp.plugins.otp_totp",
    "django_otp.plugins.otp_static",
    "victoryline",
    "unfold",
    "unfold.contrib.filters",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "django_prometheus",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "axes",
    "corsheaders",
    "csp",
    "scraping",
    "apiauth",
    "monitoring",
]

SECOND_FACTOR = ("django_otp.middleware.OTPMiddleware", "victoryline.second_factor.SecondFactorMiddleware")
MIDDLEWARE = [
    "victoryline.lib.http.middleware.RequestIdMiddleware",
    *(["corsheaders.middleware.CorsMiddleware"] if CONFIG.cors_origins else []),  # it costs each request 6 us
    "apiauth.access_log.AccessLogMiddleware",
    "victoryline.lib.http.middleware.ResponseMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "victoryline.lib.http.middleware.ApiShortcut",  # requests to the API go from here to ApiShortcutEnd
    "django_prometheus.middleware.PrometheusBeforeMiddleware",
    "victoryline.lib.http.open_limits.OpenLimitMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "victoryline.lib.http.middleware.PolicyByPathMiddleware",
    "victoryline.lib.http.middleware.DatabaseAwayMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    *(SECOND_FACTOR if CONFIG.staff_second_factor else ()),
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "axes.middleware.AxesMiddleware",
    "victoryline.lib.http.middleware.PageMetrics",
    "victoryline.lib.http.middleware.ApiShortcutEnd",
]

ROOT_URLCONF = "victoryline.urls"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

DATABASES = databases(CONFIG)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# scraping/documents/redis_store.py holds the match documents, without Django's caches.
CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
    "limits": {
        "BACKEND": "victoryline.lib.caches.LimitCache",
        "LOCATION": CONFIG.redis_url,
        "KEY_PREFIX": "victoryline",
    },
}
RATELIMIT_USE_CACHE = "limits"
RATELIMIT_FAIL_OPEN = True

AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_LOCKOUT_PARAMETERS = ["username", "ip_address"]  # each by itself
AXES_LOCKOUT_CALLABLE = "victoryline.lib.http.open_limits.login_is_locked"
AXES_ENABLE_ACCESS_FAILURE_LOG = True
AXES_VERBOSE = False
AXES_SENSITIVE_PARAMETERS: list[str] = []  # its log lines name the user and the address
OTP_TOTP_ISSUER = "VictoryLine"
AXES_IPWARE_PROXY_COUNT = CONFIG.trusted_proxies or None

LANGUAGE_CODE = "en-gb"
FORMAT_MODULE_PATH = ["victoryline.formats"]
TIME_ZONE = "UTC"

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
# Without collectstatic (a fresh clone) files are served from the source folders.
WHITENOISE_USE_FINDERS = not (BASE_DIR / "staticfiles").exists()
STATIC_ROOT = None if WHITENOISE_USE_FINDERS and "collectstatic" not in sys.argv else BASE_DIR / "staticfiles"
# Evidence and match logs, written by worker and scheduler, shown by the web process.
STORAGE_DIR = CONFIG.storage_dir or VAR_DIR / "storage"

LOGGING = logging_config(level=CONFIG.log_level, format=CONFIG.log_format, service="web")
CSRF_FAILURE_VIEW = "victoryline.lib.http.error_pages.csrf_failure"
LOGIN_URL = "admin:login"
LOGIN_REDIRECT_URL = "admin:index"

# Security. HTTPS depends on the deployment, so it is one switch of the configuration.
SECURE_SSL_REDIRECT = CONFIG.https
SECURE_REDIRECT_EXEMPT = [r"^health", r"^metrics$"]
SESSION_COOKIE_SECURE = CONFIG.https
CSRF_COOKIE_SECURE = CONFIG.https
SECURE_HSTS_SECONDS = 31_536_000 if CONFIG.https else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = CONFIG.https
SECURE_HSTS_PRELOAD = CONFIG.https
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if CONFIG.trusted_proxies else None
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SESSION_COOKIE_HTTPONLY = True
CSRF_TRUSTED_ORIGINS = (
    [f"https://{host}" for host in ALLOWED_HOSTS if host not in {"*", "[::1]"}] if CONFIG.https else []
)
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "frame-ancestors": ["'none'"],
        "base-uri": ["'none'"],
        "form-action": ["'self'"],
    },
}
# unfold's Alpine evaluates the expressions in its attributes; Swagger UI sets styles on its elements.
CSP_BY_PREFIX = {
    "/admin/": {"script-src": ["'self'", "'unsafe-eval'"], "style-src": ["'self'", "'unsafe-inline'"]},
    "/api/docs": {"script-src": ["'self'"], "style-src": ["'self'", "'unsafe-inline'"]},
}

# Pages of other sites may call the API where CORS_ORIGINS names them; never the admin, and never with credentials:
# callers are authenticated by the token in `Authorization`, which no browser sends by itself.
CORS_ALLOW_ALL_ORIGINS = "*" in CONFIG.cors_origins
CORS_ALLOWED_ORIGINS = [origin.lower() for origin in CONFIG.cors_origins if origin != "*"]
CORS_URLS_REGEX = r"/(api/|cricket-data|token/|health|status|metrics)"
CORS_ALLOW_METHODS = ("GET", "HEAD", "POST", "OPTIONS")
CORS_PREFLIGHT_MAX_AGE = 3600
CORS_ALLOW_HEADERS = (
    "Authorization", "Content-Type", "If-None-Match", "If-Modified-Since", "Idempotency-Key", "X-API-Key",
    "X-Request-Id",
)  # fmt: skip
CORS_EXPOSE_HEADERS = (
    "Allow", "Date", "ETag", "Last-Modified", "Link", "Location", "Retry-After", "WWW-Authenticate",
    "X-Data-Age-Seconds", "X-Data-Freshness", "X-Data-Source", "X-Data-State", "X-Next-Update-In",
    "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-Request-Id",
)  # fmt: skip

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["apiauth.authentication.BearerAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["apiauth.authentication.HasScope"],
    "DEFAULT_THROTTLE_CLASSES": ["apiauth.authentication.TierThrottle"],
    "DEFAULT_RENDERER_CLASSES": ["victoryline.lib.http.renderers.OrjsonRenderer"],
    "DEFAULT_PARSER_CLASSES": ["victoryline.lib.http.renderers.OrjsonParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "victoryline.lib.http.problems.exception_handler",
    "UNAUTHENTICATED_USER": None,
}
VERSION = "0.3.0"
SPECTACULAR_SETTINGS = {
    "TITLE": "VictoryLine",
    "DESCRIPTION": (
        "Live matches, with the age of the data in every answer. Start with POST /token/generate-token, which returns "
        "a token for your API key, valid for a day. Every answer about matches has its age (X-Data-State, "
        "X-Data-Age-Seconds). Send its ETag as If-None-Match with the next request: unchanged data costs no quota. "
        "Every error is a problem document (RFC 9457) with advice on what to do next."
    ),
    "VERSION": VERSION,
    "TAGS": [
        {"name": "access", "description": "Tokens, usage and limits."},
        {"name": "matches", "description": "Every sport and source in one shape."},
        {"name": "history", "description": "Earlier states of a match, and changes."},
        {"name": "cricket-data", "description": "The older, cricket-only format, and submissions."},
        {"name": "jobs", "description": "Rounds and lists of matches to be read. Scope operate."},
        {"name": "operations", "description": "Watch, stop, pause and resume matches. Scope operate."},
        {
            "name": "system",
            "description": "Health, status and metrics of the system itself. Open; /metrics by network.",
        },
    ],
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "ENFORCE_NON_BLANK_FIELDS": True,
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "victoryline.lib.http.openapi.complete",
        "monitoring.open_api.add_open_pages",
    ],
}
ACCESS_LOG_IS_SYNCHRONOUS = False  # True in tests: written at once rather than by a thread
PROMETHEUS_EXPORT_MIGRATIONS = False
PROMETHEUS_LATENCY_BUCKETS = (0.01, 0.05, 0.15, 0.5, 2.5, float("inf"))  # by view and method: few, or the page is large
UNFOLD = admin_theme.UNFOLD
if CONFIG.staff_second_factor:
    UNFOLD["LOGIN"] = {"form": "victoryline.second_factor.LoginForm"}

# The steps of the leading scheduler, run in this order: function, and seconds between two runs (0: every tick). A step
# takes the time and returns the number of items it processed. A new step is a function and a line here.
SCHEDULER_STEPS: list[tuple[str, float]] = [
    # Work: rescue tasks of dead workers, open due tasks, send hints to the workers.
    ("scraping.scheduler.recover.rescue_expired", 1.0),
    ("scraping.scheduler.other_tasks.open_discovery_tasks", 1.0),
    ("scraping.scheduler.recover.end_pauses", 1.0),
    ("scraping.recovery.source_overrides.end_due", 1.0),
    ("scraping.scheduler.recover.evaluate_source_breakers", 1.0),
    ("scraping.scheduler.recover.start_waiting_watches", 1.0),
    ("scraping.scheduler.hint.dispatch_due", 0.0),
    ("scraping.scheduler.other_tasks.open_gap_tasks", 0.5),
    ("scraping.scheduler.other_tasks.open_submission_tasks", 0.5),
    ("scraping.scheduler.hint.hint_due_tasks", 0.0),
    # Recovery and upkeep of matches and jobs.
    ("scraping.scheduler.recover.escalate_silent_matches", 5.0),
    ("scraping.scheduler.upkeep.write_data_ages", 5.0),
    ("scraping.stats.rates.sample_ages", 15.0),
    ("scraping.scheduler.upkeep.apply_importance_rules", 5.0),
    ("scraping.matches.teams.assign_new", 5.0),
    ("scraping.matches.teams.assign_all", 600.0),
    ("scraping.scheduler.recover.restart_scrapers", 5.0),
    ("scraping.scheduler.upkeep.close_finished_jobs", 1.0),
    ("scraping.jobs.operations.work_off", 0.0),
    ("scraping.jobs.lifecycle.discard_superseded", 2.0),
    ("scraping.scheduler.other_tasks.open_lineup_tasks", 5.0),
    ("scraping.matches.endings.settle_ended_matches", 2.0),
    ("scraping.scheduler.upkeep.write_match_logs", 5.0),
    ("scraping.matches.lifecycle.archive_old_matches", 300.0),
    ("scraping.scheduler.other_tasks.open_final_submission_tasks", 300.0),
    ("scraping.scheduler.retention.prune_often", 10.0),
    ("scraping.scheduler.retention.prune_seldom", 300.0),
    # Monitoring: watchdogs, health, grade.
    ("monitoring.watchdogs.matches.watch_staleness", 5.0),
    ("monitoring.watchdogs.matches.watch_error_rate", 5.0),
    ("monitoring.watchdogs.workers.watch_workers", 5.0),
    ("monitoring.watchdogs.sources.watch_traffic", 15.0),
    ("monitoring.watchdogs.sources.watch_drift", 60.0),
    ("monitoring.watchdogs.sources.watch_tokens", 15.0),
    ("monitoring.watchdogs.matches.watch_pauses", 5.0),
    ("monitoring.watchdogs.workers.watch_queue", 5.0),
    ("monitoring.watchdogs.sources.watch_blocks", 15.0),
    ("monitoring.watchdogs.workers.watch_spool", 5.0),
    ("monitoring.watchdogs.workers.watch_redis", 5.0),
    ("monitoring.health.log.log_health", 15.0),
    ("monitoring.recovery_outcomes.evaluate_recoveries", 5.0),
    ("monitoring.health.grade_changes.update_grade", 15.0),
    # Retention of everything else.
    ("victoryline.retention.prune", 15.0),
]
