"""Every variable VictoryLine reads, once: type, default, limits, place in the YAML file, explanation.

`victoryline.settings` calls `load(os.environ)` and keeps the result as `settings.CONFIG`; nobody else reads the
environment. After a change here run `make config-docs`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from victoryline.lib.config_reader import read
from victoryline.lib.origins import wrong_origins
from victoryline.lib.variables import ConfigError, choice, flag, number, path, url, whole, word, words

__all__ = ["PROJECT_ROOT", "Config", "ConfigError", "load"]

PROJECT_ROOT = Path(__file__).resolve().parent.parent
DAY_SECONDS = 86_400


@dataclass(frozen=True, kw_only=True)
class Config:
    # The life of a scraper
    scraper_max_lifetime_hours: int = whole(
        6,
        "Hours after which a scraper is replaced by a fresh one.",
        low=1,
        high=168,
        yaml="scraper.lifecycle.max_lifetime_hours",
    )
    polling_interval_seconds: float = number(
        2.5, "Seconds between two polls of a live match.", low=0.5, high=3600, yaml="scraper.lifecycle.polling_interval"
    )
    break_interval_seconds: float = number(
        30,
        "Seconds between two polls of a match in a break. The demo divides it by its pace.",
        low=0.5,
        high=3600,
        yaml="scraper.lifecycle.break_interval",
    )
    staleness_threshold_seconds: int = whole(
        300,
        "Age of a live match's data at which its scraper is restarted.",
        low=5,
        high=DAY_SECONDS,
        yaml="scraper.lifecycle.staleness_threshold",
    )
    discovery_interval_seconds: float = number(
        30,
        "Seconds between two looks at a source's list of matches.",
        low=1,
        high=DAY_SECONDS,
        yaml="scraper.lifecycle.discovery_interval",
    )
    archive_after_hours: int = whole(
        24,
        "Hours after which a completed match is archived.",
        low=1,
        high=8760,
        yaml="scraper.lifecycle.archive_after_hours",
    )
    lineup_window_hours: int = whole(
        72,
        "Hours before its start from which a match's line-ups are looked for.",
        low=1,
        high=720,
        yaml="scraper.lifecycle.lineup_window_hours",
    )

    # Memory and queues
    memory_soft_limit_mb: int = whole(
        1536,
        "Memory of a worker with its browser past which the browser, then the worker, restarts in good order.",
        low=128,
        high=1_048_576,
        yaml="scraper.resources.memory.soft_limit_mb",
    )
    memory_hard_limit_mb: int = whole(
        2048,
        "Memory past which the browser, then the worker, is killed.",
        low=128,
        high=1_048_576,
        yaml="scraper.resources.memory.hard_limit_mb",
    )
    min_free_memory_mb: int = whole(
        500,
        "Free memory of the machine below which no new watch is started.",
        low=0,
        high=1_048_576,
        yaml="scraper.resources.memory.min_free_mb",
    )
    admission_retry_seconds: int = whole(
        60,
        "Seconds after which a watch that was refused for want of memory is tried again.",
        low=1,
        high=3600,
        yaml="scraper.resources.memory.admission_retry",
    )
    idle_watch_minutes: int = whole(
        30,
        "Minutes without any change after which a watch counts as idle, and is ended first when memory is short.",
        low=1,
        high=1440,
        yaml="scraper.resources.memory.idle_watch_minutes",
    )
    max_queue_size: int = whole(
        1000,
        "Updates held while the database is away.",
        low=1,
        high=1_000_000,
        yaml="scraper.resources.queue.max_size",
    )
    max_queue_size_mb: int = whole(
        10,
        "Megabytes of updates held while the database is away.",
        low=1,
        high=10_240,
        yaml="scraper.resources.queue.max_size_mb",
    )
    orphan_cleanup_minutes: int = whole(
        30,
        "Minutes between two searches for browsers whose worker is gone.",
        low=1,
        high=1440,
        yaml="scraper.resources.orphan_cleanup_minutes",
    )

    # Breakers, retries, pauses
    circuit_breaker_threshold: int = whole(
        5,
        "Consecutive failures that open a breaker.",
        low=1,
        high=1000,
        yaml="scraper.resilience.circuit_breaker.threshold",
    )
    circuit_breaker_timeout_seconds: int = whole(
        60,
        "Seconds an open breaker waits before it lets a probe through.",
        low=1,
        high=DAY_SECONDS,
        yaml="scraper.resilience.circuit_breaker.timeout",
    )
    circuit_breaker_success_threshold: int = whole(
        5,
        "Successful probes that close a breaker.",
        low=1,
        high=1000,
        yaml="scraper.resilience.circuit_breaker.success_threshold",
    )
    retry_max_attempts: int = whole(
        5,
        "Attempts a task gets before it becomes a dead letter.",
        low=1,
        high=100,
        yaml="scraper.resilience.retry.max_attempts",
    )
    retry_base_delay_seconds: int = whole(
        1,
        "Delay before the first retry; it doubles each time.",
        low=1,
        high=3600,
        yaml="scraper.resilience.retry.base_delay",
    )
    retry_max_delay_seconds: int = whole(
        16, "Longest delay between two attempts.", low=1, high=DAY_SECONDS, yaml="scraper.resilience.retry.max_delay"
    )
    source_breaker_window_seconds: int = whole(
        600,
        "The time over which a whole source's calls are judged.",
        low=10,
        high=DAY_SECONDS,
        yaml="scraper.resilience.source_breaker.window",
    )
    source_breaker_min_calls: int = whole(
        30,
        "Fewest calls in that time to judge a source by.",
        low=1,
        high=1_000_000,
        yaml="scraper.resilience.source_breaker.min_calls",
    )
    source_breaker_bad_percent: int = whole(
        35,
        "Share of bad calls that opens a source's breaker.",
        low=1,
        high=100,
        yaml="scraper.resilience.source_breaker.bad_percent",
    )
    source_breaker_min_seconds: int = whole(
        60,
        "Shortest time over which calls must have gone bad: a hiccup does not open a source's breaker.",
        low=0,
        high=DAY_SECONDS,
        yaml="scraper.resilience.source_breaker.min_seconds",
    )
    source_breaker_cooldown_seconds: int = whole(
        900,
        "Seconds a source is left alone before probes are let through.",
        low=1,
        high=DAY_SECONDS,
        yaml="scraper.resilience.source_breaker.cooldown",
    )
    source_breaker_probes: int = whole(
        3,
        "Probes, all good, that close a source's breaker.",
        low=1,
        high=100,
        yaml="scraper.resilience.source_breaker.probes",
    )
    retry_budget_percent: int = whole(
        20,
        "Largest share of a source's calls that may be retries.",
        low=1,
        high=100,
        yaml="scraper.resilience.retry.budget_percent",
    )
    pause_after_failures: int = whole(
        5, "Failed tasks in a row that pause a match.", low=1, high=1000, yaml="scraper.resilience.pause.after_failures"
    )
    pause_seconds: int = whole(
        300, "How long a match stays paused.", low=1, high=DAY_SECONDS, yaml="scraper.resilience.pause.seconds"
    )

    # The browser
    page_timeout_seconds: int = whole(
        30, "Time a page has to load.", low=1, high=600, yaml="scraper.browser.timeouts.page"
    )
    navigation_timeout_seconds: int = whole(
        30, "Time a navigation has to answer.", low=1, high=600, yaml="scraper.browser.timeouts.navigation"
    )
    selector_timeout_seconds: int = whole(
        5, "Time an element has to appear.", low=1, high=600, yaml="scraper.browser.timeouts.selector"
    )
    browser_headless: bool = flag(True, "Run Chromium without a window.", yaml="scraper.browser.headless")
    chromium_path: Path | None = path(
        None,
        "The Chromium to use. Empty: Playwright's own, else the system's.",
        root=PROJECT_ROOT,
        yaml="scraper.browser.chromium_path",
    )
    browser_max_pages: int = whole(
        1000,
        "Pages after which a browser is replaced by a fresh one.",
        low=1,
        high=1_000_000,
        yaml="scraper.browser.max_pages",
    )
    browser_hung_seconds: int = whole(
        30,
        "Seconds without an answer after which a browser counts as hung, and is killed.",
        low=1,
        high=600,
        yaml="scraper.browser.hung_seconds",
    )
    browser_drain_seconds: int = whole(
        20,
        "Longest wait for pages under way before a browser is replaced.",
        low=0,
        high=600,
        yaml="scraper.browser.drain_seconds",
    )
    scraper_stealth: bool = flag(
        False, "Hide the marks of an automated browser (playwright-stealth).", yaml="scraper.browser.stealth"
    )
    scraper_cdp_endpoint: str = url(
        "The DevTools endpoint of a Chromium that runs already. Empty with SCRAPER_USE_CDP: we start one ourselves.",
        schemes=("http", "https", "ws", "wss"),
        yaml="scraper.browser.cdp_endpoint",
    )
    max_body_kb: int = whole(
        8192,
        "Largest answer of a source that is read, decompressed.",
        low=1,
        high=1_048_576,
        yaml="scraper.browser.max_body_kb",
    )
    max_redirects: int = whole(
        3, "Redirects that a direct read follows.", low=0, high=20, yaml="scraper.browser.max_redirects"
    )
    scraper_use_cdp: bool = flag(False, "Drive the browser over the DevTools protocol.", yaml="scraper.browser.use_cdp")

    # Proxies
    scraper_proxy_mode: str = choice(
        "sticky",
        "Keep a proxy session for a batch, or change it with every visit.",
        choices=("sticky", "rotating"),
        yaml="scraper.proxy.mode",
    )
    scraper_sticky_ttl_seconds: int = whole(
        600,
        "Life of a session at a source; then the next visit begins another, with other cookies.",
        low=1,
        high=DAY_SECONDS,
        yaml="scraper.proxy.sticky_ttl",
    )
    scraper_proxies: str = word(
        "", "Proxies as URLs, separated by spaces: http://user:password@host:port#country.", secret=True
    )
    proxy_quarantine_seconds: int = whole(
        600,
        "How long a proxy that failed is left alone.",
        low=1,
        high=DAY_SECONDS,
        yaml="scraper.proxy.quarantine",
    )
    iproyal_host: str = word("", "Proxy host.", yaml="scraper.proxy.host")
    iproyal_port: int = whole(0, "Proxy port; 0 for none.", low=0, high=65_535, yaml="scraper.proxy.port")
    iproyal_username: str = word("", "Proxy user.", secret=True)
    iproyal_password: str = word("", "Proxy password.", secret=True)
    iproyal_country: str = word("", "Country the proxy should be in.", yaml="scraper.proxy.country")

    # Tokens that sources want
    source_credentials: str = word(
        "", "What the token services of sources want to see: source=secret, separated by spaces.", secret=True
    )
    token_degraded_seconds: int = whole(
        300,
        "Time without a token after which its source counts as degraded.",
        low=1,
        high=DAY_SECONDS,
        yaml="scraper.tokens.degraded_after",
    )

    # Drift
    drift_failures: int = whole(
        10,
        "Parse failures in a row of a source, more than which it counts as changed: alert, breaker open.",
        low=1,
        high=1000,
        yaml="scraper.drift.failures",
    )
    drift_retry_seconds: int = whole(
        300,
        "Seconds between two tries of a source that counts as changed.",
        low=1,
        high=DAY_SECONDS,
        yaml="scraper.drift.retry",
    )
    drift_drop_percent: int = whole(
        30,
        "Fall of a field's fill rate below its baseline, in percentage points, that counts as drift.",
        low=1,
        high=100,
        yaml="scraper.drift.drop_percent",
    )

    # What adapts by itself
    enable_adaptive_polling: bool = flag(
        True,
        "Poll faster in action, slower in breaks and under errors.",
        yaml="scraper.adaptive.polling",
    )
    enable_adaptive_timeouts: bool = flag(
        True,
        "Stretch and shrink timeouts with the source's latency.",
        yaml="scraper.adaptive.timeouts",
    )
    enable_match_state_detection: bool = flag(
        True,
        "Notice breaks, innings changes and the end of a match.",
        yaml="scraper.adaptive.match_state",
    )
    error_calm_seconds: int = whole(
        300,
        "Calm time after which a match that errors slowed is polled as before. The demo divides it by its pace.",
        low=1,
        high=DAY_SECONDS,
        yaml="scraper.adaptive.error_calm",
    )
    importance_file: Path | None = path(
        None,
        "Which matches matter more or less than others. Empty: config/importance.yaml.",
        root=PROJECT_ROOT,
        yaml="scraper.adaptive.importance_file",
    )

    # Monitoring
    enable_prometheus_metrics: bool = flag(True, "Serve metrics.", yaml="scraper.monitoring.prometheus.enabled")
    prometheus_port: int = whole(
        9090,
        "Port of a worker's or scheduler's own metrics.",
        low=1,
        high=65_535,
        yaml="scraper.monitoring.prometheus.port",
    )
    metrics_bind: str = word(
        "127.0.0.1", "Address a worker's or scheduler's metrics listen on.", yaml="scraper.monitoring.prometheus.bind"
    )
    health_check_enabled: bool = flag(True, "Serve /health.", yaml="scraper.monitoring.health_check.enabled")
    log_level: str = choice(
        "INFO",
        "Least severe level that is logged.",
        choices=("DEBUG", "INFO", "WARN", "WARNING", "ERROR", "CRITICAL"),
        yaml="scraper.monitoring.logging.level",
    )
    log_format: str = choice(
        "json",
        "One JSON object a line, or lines for people.",
        choices=("json", "console"),
        yaml="scraper.monitoring.logging.format",
        yaml_words=("scraper.monitoring.logging.structured", {"true": "json", "false": "console"}),
    )
    sentry_dsn: str = word("", "Where alerts are sent as Sentry events.", secret=True)

    # Who is told of alerts
    alert_webhook_url: str = url(
        "Where alerts are posted as JSON. Empty: nowhere.", schemes=("http", "https"), secret=True
    )
    alert_webhook_secret: str = word(
        "", "Signs what is posted (HMAC-SHA256), so that nobody can forge it.", secret=True
    )
    alert_email_to: tuple[str, ...] = words((), "Who gets alerts by e-mail.", yaml="alerts.email.to")
    alert_email_from: str = word("victoryline@localhost", "Who they come from.", yaml="alerts.email.from")
    smtp_url: str = url(
        "The mail server: smtp://, smtps:// or smtp+starttls:// with user:password@host:port. Empty: no e-mail.",
        schemes=("smtp", "smtps", "smtp+starttls"),
        secret=True,
    )
    alert_batch_seconds: int = whole(
        300,
        "Warnings that come within this time are told together. Critical alerts are told at once.",
        low=0,
        high=3600,
        yaml="alerts.batch_seconds",
    )
    alert_repeat_minutes: int = whole(
        60,
        "Minutes after which an alert that still stands is told again; 0: never.",
        low=0,
        high=10_080,
        yaml="alerts.repeat_minutes",
    )
    alert_hourly_limit: int = whole(
        30,
        "Most messages to a channel in an hour; what is more waits, and comes as one.",
        low=1,
        high=10_000,
        yaml="alerts.hourly_limit",
    )
    pause_alert_seconds: int = whole(
        900,
        "Time paused within an hour after which a live match's pauses are an alert of their own.",
        low=1,
        high=DAY_SECONDS,
        yaml="alerts.pause_seconds",
    )

    # Database and broker
    database_url: str = url(
        "PostgreSQL to use. Empty: SQLite in VAR_DIR.", schemes=("postgres", "postgresql"), host=False, secret=True
    )
    redis_url: str = url(
        "Redis to use. Empty: the broker inside the engine process.",
        schemes=("redis", "rediss", "unix"),
        host=False,
        secret=True,
    )
    db_connection_pool_size: int = whole(
        10, "Connections a process keeps open (PostgreSQL).", low=1, high=1000, yaml="database.pool.size"
    )
    db_connection_timeout_seconds: int = whole(
        30, "Time to wait for a connection.", low=1, high=600, yaml="database.pool.timeout"
    )
    db_pool_min: int = whole(5, "Fewest connections kept open.", low=0, high=1000, yaml="database.pool.min")
    db_pool_max: int = whole(20, "Most connections a process opens.", low=1, high=1000, yaml="database.pool.max")
    db_pool_idle_seconds: int = whole(
        600,
        "Idle time after which a connection is closed.",
        low=1,
        high=DAY_SECONDS,
        yaml="database.pool.idle",
    )
    db_answer_seconds: int = whole(
        20,
        "Longest wait for an answer of PostgreSQL; then the connection counts as lost.",
        low=1,
        high=3600,
        yaml="database.answer_seconds",
    )
    db_pool_lifetime_seconds: int = whole(
        1800, "Age at which a connection is replaced.", low=1, high=DAY_SECONDS, yaml="database.pool.lifetime"
    )

    # Web
    host: str = word("127.0.0.1", "Address the web server listens on.", yaml="web.host")
    port: int = whole(8000, "Port of the web server.", low=1, high=65_535, yaml="web.port")
    debug: bool = flag(False, "Django's debug pages. Never in production.", yaml="web.debug")
    allowed_hosts: tuple[str, ...] = words(
        ("127.0.0.1", "localhost", "[::1]"), "Host names the web server answers to.", yaml="web.allowed_hosts"
    )
    public_url: str = url(
        "Where people reach this site; links in alerts lead there. Empty: the first of ALLOWED_HOSTS, with HTTPS.",
        schemes=("http", "https"),
        yaml="web.public_url",
    )
    https: bool = flag(False, "The site is served over HTTPS: secure cookies, redirect, HSTS.", yaml="web.https")
    trusted_proxies: int = whole(
        0, "Proxies in front whose forwarding headers count.", low=0, high=10, yaml="web.trusted_proxies"
    )
    secret_key: str = word(
        "", "Django's secret. Empty: made once and kept in VAR_DIR; required with PostgreSQL.", secret=True
    )
    jwt_signing_key: str = word(
        "", "Signs API tokens. Empty: made once and kept in VAR_DIR; required with PostgreSQL.", secret=True
    )
    jwt_previous_keys: tuple[str, ...] = words(
        (), "Keys that signed tokens before JWT_SIGNING_KEY did; good until those tokens have ended.", secret=True
    )
    token_lifetime_hours: int = whole(24, "Life of an API token.", low=1, high=720, yaml="web.token_lifetime_hours")
    rate_limit_standard_per_minute: int = whole(
        100, "Requests a minute of a standard consumer.", low=1, high=1_000_000, yaml="web.rate_limits.standard"
    )
    rate_limit_premium_per_minute: int = whole(
        1000, "Requests a minute of a premium consumer.", low=1, high=1_000_000, yaml="web.rate_limits.premium"
    )
    rate_limit_anonymous_per_minute: int = whole(
        60,
        "Requests a minute to protected addresses without a valid token, by caller's address.",
        low=1,
        high=1_000_000,
        yaml="web.rate_limits.anonymous",
    )
    rate_limit_tokens_per_minute: int = whole(
        60, "Tokens a minute that one address may ask for.", low=1, high=1_000_000, yaml="web.rate_limits.tokens"
    )
    key_overlap_hours: int = whole(
        24, "Hours that a key goes on working after it was rotated.", low=0, high=8760, yaml="web.key_overlap_hours"
    )
    cors_origins: tuple[str, ...] = words(
        (),
        "Sites whose pages may call the API from a browser, such as https://example.com; * for all.",
        yaml="web.cors_origins",
    )
    request_trace: str = choice(
        "refused",
        "Which API requests are logged in full, without secrets: none, refused, slow (and refused), all.",
        choices=("none", "refused", "slow", "all"),
        yaml="web.request_trace",
    )
    request_slow_ms: int = whole(
        500, "Milliseconds from which a request counts as slow.", low=1, high=600_000, yaml="web.request_slow_ms"
    )

    # Worker and scheduler
    worker_threads: int = whole(8, "Tasks a worker runs at once.", low=1, high=64, yaml="engine.worker_threads")
    poll_group_size: int = whole(
        24,
        "Polls that a worker thread has under way at once; what they bring is committed together.",
        low=1,
        high=200,
        yaml="engine.poll_group_size",
    )
    task_lease_seconds: int = whole(
        15, "Time a worker owns a task without a heartbeat.", low=5, high=300, yaml="engine.task_lease_seconds"
    )
    heartbeat_seconds: float = number(
        3, "Seconds between two heartbeats of a worker.", low=0.2, high=100, yaml="engine.heartbeat_seconds"
    )
    max_rescues: int = whole(
        3,
        "Workers that may vanish with a task in hand before it is a dead letter.",
        low=1,
        high=100,
        yaml="engine.max_rescues",
    )
    hint_again_seconds: float = number(
        5,
        "Seconds after which an unclaimed task is announced again.",
        low=0.2,
        high=3600,
        yaml="engine.hint_again_seconds",
    )
    scheduler_tick_seconds: float = number(
        0.1, "Pause between two rounds of the scheduler.", low=0.01, high=60, yaml="engine.scheduler_tick_seconds"
    )
    leader_lease_seconds: float = number(
        10, "Time a scheduler stays leader without renewing.", low=1, high=300, yaml="engine.leader_lease_seconds"
    )

    stop_seconds: int = whole(
        25,
        "Time a worker has to finish the work in hand when it is told to stop.",
        low=1,
        high=600,
        yaml="engine.stop_seconds",
    )
    task_deadline_seconds: int = whole(
        90,
        "Time without progress after which a task hangs, and its process is replaced.",
        low=5,
        high=3600,
        yaml="engine.task_deadline_seconds",
    )
    stall_seconds: int = whole(
        30,
        "Time after which a silent loop or heartbeat counts as stalled, and its process is replaced.",
        low=2,
        high=3600,
        yaml="engine.stall_seconds",
    )
    min_free_disk_mb: int = whole(
        200,
        "Free disk space below which no new work is taken.",
        low=0,
        high=1_048_576,
        yaml="engine.min_free_disk_mb",
    )

    # What is kept, and for how long
    evidence_max_kb: int = whole(
        512, "Largest file of evidence of a failure.", low=1, high=102_400, yaml="retention.evidence_max_kb"
    )
    evidence_total_mb: int = whole(
        200,
        "Disk space for all evidence; the oldest goes first.",
        low=1,
        high=1_048_576,
        yaml="retention.evidence_total_mb",
    )
    keep_evidence_days: int = whole(7, "Days evidence is kept.", low=1, high=3650, yaml="retention.evidence_days")
    keep_errors_days: int = whole(30, "Days failed attempts are kept.", low=30, high=3650, yaml="retention.errors_days")
    keep_dead_days: int = whole(30, "Days dead letters are kept.", low=1, high=3650, yaml="retention.dead_days")
    keep_done_hours: int = whole(
        1, "Hours tasks that went well are kept.", low=1, high=87_600, yaml="retention.done_hours"
    )
    keep_snapshots_hours: int = whole(
        24, "Hours old states of a match are kept.", low=1, high=87_600, yaml="retention.snapshots_hours"
    )
    keep_access_log_days: int = whole(
        30, "Days the API's access log is kept.", low=1, high=3650, yaml="retention.access_log_days"
    )
    keep_usage_days: int = whole(
        400,
        "Days the sums of each consumer's requests by the hour are kept.",
        low=1,
        high=3650,
        yaml="retention.usage_days",
    )
    keep_submissions_days: int = whole(
        7,
        "Days what was sent to POST /cricket-data is kept; as long an Idempotency-Key is remembered.",
        low=1,
        high=3650,
        yaml="retention.submissions_days",
    )
    keep_matches_days: int = whole(
        365,
        "Days after which an archived match and its events are deleted.",
        low=1,
        high=36_500,
        yaml="retention.matches_days",
    )
    match_log_retention_days: int = whole(
        90, "Days the file with the record of a match is kept.", low=1, high=36_500, yaml="retention.match_log_days"
    )

    # For tests of this system
    crash_at: str = word("", "Name of a crash point at which the process kills itself. For fault tests only.")

    # The stadium and the demo
    demo: bool = flag(True, "`manage.py run` starts the stadium and its matches.", yaml="stadium.demo")
    stadium_url: str = url("A stadium that stands in for the sources.", schemes=("http", "https"), yaml="stadium.url")
    stadium_port: int = whole(0, "Port of the stadium; 0 for any free one.", low=0, high=65_535, yaml="stadium.port")
    stadium_pace: float = number(
        10, "How many times faster than life the matches run.", low=0.1, high=600, yaml="stadium.pace"
    )
    stadium_programme: str = word("demo", "Which set of matches the stadium plays.", yaml="stadium.programme")
    stadium_seed: int = whole(7, "Same seed, same matches.", low=0, high=2_147_483_647, yaml="stadium.seed")

    # Files
    var_dir: Path = path(
        PROJECT_ROOT / "var", "Everything VictoryLine writes.", root=PROJECT_ROOT, yaml="files.var_dir"
    )
    match_log_dir: Path | None = path(
        None,
        "Where the records of ended matches are kept. Empty: match_logs in VAR_DIR.",
        root=PROJECT_ROOT,
        yaml="files.match_log_dir",
    )
    config_file: Path | None = path(None, "The YAML file to read.", root=PROJECT_ROOT)


def load(environ: Mapping[str, str], yaml_path: Path | None = None) -> Config:
    """Read the whole configuration, or raise ConfigError with every problem in it."""
    if yaml_path is None and (named := environ.get("CONFIG_FILE", "").strip()):
        yaml_path = (PROJECT_ROOT / Path(named).expanduser()).resolve()
    values, problems = read(Config, environ, yaml_path)
    config = Config(**values)
    if problems := problems + list(_contradictions(config)):
        raise ConfigError(problems)
    return config


def _contradictions(config: Config) -> Iterator[str]:
    """Pairs of values that are fine alone and wrong together."""
    yield from _must_be_below(config, "memory_soft_limit_mb", "memory_hard_limit_mb", strictly=True)
    yield from _must_be_below(config, "retry_base_delay_seconds", "retry_max_delay_seconds")
    yield from _must_be_below(config, "polling_interval_seconds", "staleness_threshold_seconds", strictly=True)
    yield from _must_be_below(config, "db_pool_min", "db_connection_pool_size")
    yield from _must_be_below(config, "db_connection_pool_size", "db_pool_max")
    yield from _must_be_below(config, "scheduler_tick_seconds", "leader_lease_seconds", strictly=True)
    yield from _must_be_below(config, "rate_limit_standard_per_minute", "rate_limit_premium_per_minute")
    if config.heartbeat_seconds * 2 > config.task_lease_seconds:
        yield (
            f"HEARTBEAT_SECONDS is {config.heartbeat_seconds:g} and TASK_LEASE_SECONDS is {config.task_lease_seconds}: "
            "a lease must outlive two heartbeats"
        )
    if config.enable_prometheus_metrics and config.port == config.prometheus_port:
        yield f"PORT and PROMETHEUS_PORT are both {config.port}: they must differ"
    for origin in wrong_origins(config.cors_origins):
        yield (
            f'CORS_ORIGINS has "{origin}": an origin is scheme://host or scheme://host:port, as a browser sends it '
            "(https://example.com), without a path and without the usual port; or * for all"
        )
    for place, pair in enumerate(config.source_credentials.split(), start=1):
        if not all(pair.partition("=")):
            yield f"SOURCE_CREDENTIALS: entry {place} is not source=secret"
    if config.database_url:
        for name in ("secret_key", "jwt_signing_key"):
            if not getattr(config, name):
                yield f"{name.upper()} is empty: with PostgreSQL (DATABASE_URL) it must be set, and the same everywhere"


def _must_be_below(config: Config, lower: str, upper: str, *, strictly: bool = False) -> Iterator[str]:
    low, high = _number(config, lower), _number(config, upper)
    if low > high or (strictly and low == high):
        relation = "below" if strictly else "at most"
        yield f"{lower.upper()} is {low:.10g} and {upper.upper()} is {high:.10g}: it must be {relation} that"


def _number(config: Config, name: str) -> float:
    value: Any = getattr(config, name)
    return float(value)
