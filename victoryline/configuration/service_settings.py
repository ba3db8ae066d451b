"""Settings of the installation: monitoring, alerts, database, web, processes, retention, demo, files."""

from typing import Annotated, Literal

from victoryline.configuration.fields import (
    PROJECT_ROOT,
    FilePath,
    Group,
    HttpUrl,
    LowerCase,
    NetworkList,
    OptionalPath,
    PostgresUrl,
    RedisUrl,
    TextList,
    UpperCase,
    secret,
    setting,
)

LOCAL_NETWORKS = ("127.0.0.0/8", "::1/128", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")


class Monitoring(Group):
    """Monitoring."""

    section = "scraper.monitoring"
    enable_prometheus_metrics: bool = setting(True, "prometheus.enabled")
    """Serve metrics."""
    prometheus_port: int = setting(9090, "prometheus.port", 1, 65_535)
    """Port of a worker's or scheduler's own metrics."""
    metrics_allowed_networks: NetworkList = setting(LOCAL_NETWORKS, "prometheus.allowed_networks")
    """Networks that read /metrics without a token. Behind a balancer set TRUSTED_PROXIES, or its address counts."""
    metrics_token: str = secret("")
    """Bearer token with which any address may read /metrics. Empty: none."""
    metrics_bind: str = setting("127.0.0.1", "prometheus.bind")
    """Address a worker's or scheduler's metrics listen on."""
    health_check_enabled: bool = setting(True, "health_check.enabled")
    """Serve /health."""
    status_page_public_scores: Annotated[Literal["demo", "true", "false"], LowerCase] = setting(
        "demo", "status_page.public_scores"
    )
    """Show matches on the status page and in /status to visitors without a login; demo: only while the demo is on."""
    log_level: Annotated[Literal["DEBUG", "INFO", "WARN", "WARNING", "ERROR", "CRITICAL"], UpperCase] = setting(
        "INFO", "logging.level"
    )
    """Least severe level that is logged."""
    log_format: Annotated[Literal["json", "console"], LowerCase] = setting("json", "logging.format")
    """One JSON object per line, or lines for a terminal."""
    log_unchanged_every: int = setting(12, "logging.unchanged_every", 0, 100_000)
    """Of a match's polls without a change one of so many is a log line; 0: none. All other attempts are logged."""
    source_trace: Annotated[Literal["none", "failed", "slow", "all"], LowerCase] = setting(
        "failed", "logging.source_trace"
    )
    """Requests to sources that are logged, one line each: none, failed, slow (and failed), all."""
    sentry_dsn: str = secret("")
    """Sentry project that receives alerts as events."""


class Alerts(Group):
    """Alert delivery."""

    section = "alerts"
    alert_webhook_url: HttpUrl = secret("")
    """URL that alerts are posted to as JSON. Empty: none."""
    alert_webhook_secret: str = secret("")
    """Key of the HMAC-SHA256 signature of posted alerts."""


class Storage(Group):
    """Database and broker."""

    section = "database"
    database_url: PostgresUrl = secret("")
    """PostgreSQL to use. Empty: SQLite in VAR_DIR."""
    redis_url: RedisUrl = secret("")
    """Redis to use. Empty: the broker inside the engine process."""
    db_connection_pool_size: int = setting(10, "pool.size", 1, 1000)
    """Connections a process keeps open (PostgreSQL); twice as many at peak, and half as many always ready."""
    db_connection_timeout_seconds: int = setting(30, "pool.timeout", 1, 600)
    """Seconds to wait for a connection of the pool."""
    db_answer_seconds: int = setting(20, "answer_seconds", 1, 3600)
    """Seconds to wait for an answer of PostgreSQL before the connection counts as lost."""


class Web(Group):
    """Web and API."""

    section = "web"
    host: str = setting("127.0.0.1", "host")
    """Address the web server listens on."""
    port: int = setting(8000, "port", 1, 65_535)
    """Port of the web server."""
    allowed_hosts: TextList = setting(("127.0.0.1", "localhost", "[::1]"), "allowed_hosts")
    """Host names the web server answers to."""
    public_url: HttpUrl = setting("", "public_url")
    """Address of this site, for links in alerts. Empty: the first of ALLOWED_HOSTS, with HTTPS."""
    https: bool = setting(False, "https")
    """The site is served over HTTPS: secure cookies, redirect, HSTS."""
    trusted_proxies: int = setting(0, "trusted_proxies", 0, 10)
    """Number of reverse proxies in front whose forwarding headers are trusted."""
    staff_second_factor: bool = setting(False, "staff_second_factor")
    """A login to the admin needs a one-time code too: docs/security.md."""
    secret_key: str = secret("")
    """Django's secret key. Empty: generated once and kept in VAR_DIR; required with PostgreSQL."""
    jwt_signing_key: str = secret("")
    """Signs API tokens. Empty: generated once and kept in VAR_DIR; required with PostgreSQL."""
    jwt_previous_keys: TextList = secret(())
    """Earlier signing keys, accepted until the tokens they signed have expired."""
    rate_limit_standard_per_minute: int = setting(100, "rate_limits.standard", 1, 1_000_000)
    """Requests a minute of a standard consumer."""
    rate_limit_premium_per_minute: int = setting(1000, "rate_limits.premium", 1, 1_000_000)
    """Requests a minute of a premium consumer."""
    cors_origins: TextList = setting((), "cors_origins")
    """Sites whose pages may call the API from a browser, such as https://example.com; * for all."""
    request_trace: Annotated[Literal["none", "refused", "slow", "all"], LowerCase] = setting("refused", "request_trace")
    """API requests that are logged in full, without secrets: none, refused, slow (and refused), all."""


class Engine(Group):
    """Worker and scheduler."""

    section = "engine"
    worker_threads: int = setting(8, "worker_threads", 1, 64)
    """Tasks a worker runs at once."""
    stop_seconds: int = setting(25, "stop_seconds", 1, 600)
    """Seconds a worker has to finish its running tasks after SIGTERM."""


class Retention(Group):
    """Retention."""

    section = "retention"
    keep_errors_days: int = setting(30, "errors_days", 30, 3650)
    """Days that failed attempts, dead letters, jobs and ERROR and CRITICAL log lines (as rows) are kept."""
    keep_access_log_days: int = setting(30, "access_log_days", 1, 3650)
    """Days that the API's access log is kept."""
    keep_matches_days: int = setting(365, "matches_days", 1, 36_500)
    """Days after which an archived match and its events are deleted."""


class Demo(Group):
    """Demo and tests."""

    section = "stadium"
    demo: bool = setting(True, "demo")
    """`manage.py run` starts the stadium and its matches."""
    stadium_url: HttpUrl = setting("", "url")
    """Stadium that replaces the real sources."""
    stadium_pace: float = setting(10, "pace", 0.1, 600)
    """Speed of the matches; 1 is real time."""
    stadium_programme: str = setting("demo", "programme")
    """Set of matches that the stadium plays."""


class Files(Group):
    """Files."""

    section = "files"
    var_dir: FilePath = setting(PROJECT_ROOT / "var", "var_dir")
    """Folder of every file that VictoryLine writes."""
    storage_dir: OptionalPath = setting(None, "storage_dir")
    """Folder of evidence and match logs, shared by all processes. Empty: storage in VAR_DIR."""
    config_file: OptionalPath = setting(None, "")
    """The YAML file to read."""
