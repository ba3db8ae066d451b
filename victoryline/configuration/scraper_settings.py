"""Settings of the scrapers: polling, resources, retries and breakers, browser, proxies."""

from typing import Annotated, Literal

from victoryline.configuration.fields import DevToolsUrl, Group, LowerCase, OptionalPath, secret, setting

DAY_SECONDS = 86_400


class Lifecycle(Group):
    """Polling and lifetime of scrapers."""

    section = "scraper.lifecycle"
    scraper_max_lifetime_hours: int = setting(6, "max_lifetime_hours", 1, 168)
    """Hours after which a scraper is replaced by a fresh one."""
    polling_interval_seconds: float = setting(2.5, "polling_interval", 0.5, 3600)
    """Seconds between two polls of a live match."""
    break_interval_seconds: float = setting(30, "break_interval", 0.5, 3600)
    """Seconds between two polls of a match in a break. The demo divides it by its pace."""
    break_after_polls: int = setting(10, "break_after_polls", 1, 10_000)
    """Polls without a change that make a break of a match, unless its source says that play is on."""
    break_after_polls_in_play: int = setting(40, "break_after_polls_in_play", 1, 10_000)
    """The same where its source says that play is on: a minute between two balls is no break."""
    staleness_threshold_seconds: int = setting(300, "staleness_threshold", 5, DAY_SECONDS)
    """Age of a live match's data at which its scraper is restarted."""
    discovery_interval_seconds: float = setting(30, "discovery_interval", 1, DAY_SECONDS)
    """Seconds between two reads of a source's list of matches."""


class Resources(Group):
    """Memory and queues."""

    section = "scraper.resources"
    memory_soft_limit_mb: int = setting(1536, "memory.soft_limit_mb", 128, 1_048_576)
    """Memory of a worker and its browser above which both are restarted after their running work."""
    memory_hard_limit_mb: int = setting(2048, "memory.hard_limit_mb", 128, 1_048_576)
    """Memory above which the browser, then the worker, is killed."""
    max_queue_size: int = setting(1000, "queue.max_size", 1, 1_000_000)
    """Most updates held while the database is unreachable."""
    max_queue_size_mb: int = setting(10, "queue.max_size_mb", 1, 10_240)
    """Most megabytes of updates held while the database is unreachable."""


class Resilience(Group):
    """Breakers, retries, pauses."""

    section = "scraper.resilience"
    circuit_breaker_threshold: int = setting(5, "circuit_breaker.threshold", 1, 1000)
    """Consecutive failures that open a breaker."""
    circuit_breaker_timeout_seconds: int = setting(60, "circuit_breaker.timeout", 1, DAY_SECONDS)
    """Seconds an open breaker waits before it lets a probe through."""
    circuit_breaker_success_threshold: int = setting(5, "circuit_breaker.success_threshold", 1, 1000)
    """Successful probes that close a breaker."""
    retry_max_attempts: int = setting(5, "retry.max_attempts", 1, 100)
    """Retries after a failed first attempt, before the task becomes a dead letter."""
    retry_base_delay_seconds: int = setting(1, "retry.base_delay", 1, 3600)
    """Delay before the first retry; it doubles each time."""
    retry_max_delay_seconds: int = setting(16, "retry.max_delay", 1, DAY_SECONDS)
    """Longest delay between two attempts, jitter included."""
    source_breaker_cooldown_seconds: int = setting(900, "source_breaker.cooldown", 1, DAY_SECONDS)
    """Seconds a source's breaker stays open before it lets probes through."""


class Browser(Group):
    """Browser."""

    section = "scraper.browser"
    page_timeout_seconds: int = setting(30, "timeouts.page", 1, 600)
    """Seconds a page has to load."""
    navigation_timeout_seconds: int = setting(30, "timeouts.navigation", 1, 600)
    """Seconds a navigation has to answer."""
    selector_timeout_seconds: int = setting(5, "timeouts.selector", 1, 600)
    """Seconds an element has to appear."""
    browser_headless: bool = setting(True, "headless")
    """Run Chromium without a window."""
    chromium_path: OptionalPath = setting(None, "chromium_path")
    """Chromium to use. Empty: Playwright's own, else the system's."""
    scraper_stealth: bool = setting(False, "stealth")
    """Hide the marks of an automated browser (playwright-stealth)."""
    scraper_cdp_endpoint: DevToolsUrl = setting("", "cdp_endpoint")
    """DevTools endpoint of a running Chromium. Empty with SCRAPER_USE_CDP: the worker starts one."""
    scraper_use_cdp: bool = setting(False, "use_cdp")
    """Drive the browser over the DevTools protocol."""


class Proxies(Group):
    """Proxies."""

    section = "scraper.proxy"
    scraper_proxy_mode: Annotated[Literal["sticky", "rotating"], LowerCase] = setting("sticky", "mode")
    """Keep a proxy session for a batch, or change it with every visit."""
    scraper_sticky_ttl_seconds: int = setting(600, "sticky_ttl", 1, DAY_SECONDS)
    """Seconds a session at a source lasts; the next visit then starts another one, with new cookies."""
    scraper_sessions_per_source: int = setting(1, "sessions_per_source", 1, 20)
    """Sessions that a worker keeps at a source, each with a proxy of its own; the least recently used one reads."""
    scraper_proxies: str = secret("")
    """Proxies as URLs, separated by spaces: http://user:password@host:port#country."""
    iproyal_host: str = setting("", "host")
    """Proxy host."""
    iproyal_port: int = setting(0, "port", 0, 65_535)
    """Proxy port; 0 for none."""
    iproyal_username: str = secret("")
    """Proxy user."""
    iproyal_password: str = secret("")
    """Proxy password."""
    iproyal_country: str = setting("", "country")
    """Country the proxy should be in."""


class SourceAccess(Group):
    """Source tokens."""

    section = "scraper"
    source_credentials: str = secret("")
    """Credentials for the token services of sources: source=secret, separated by spaces."""


class Adaptive(Group):
    """Adaptive behaviour."""

    section = "scraper.adaptive"
    enable_adaptive_polling: bool = setting(True, "polling")
    """Poll faster in action, slower in breaks and under errors."""
    enable_adaptive_timeouts: bool = setting(True, "timeouts")
    """Stretch and shrink timeouts with the source's latency."""
    enable_match_state_detection: bool = setting(True, "match_state")
    """Detect breaks, innings changes and the end of a match."""
    error_calm_seconds: int = setting(300, "error_calm", 1, DAY_SECONDS)
    """Seconds without errors until a match is polled normally again. The demo divides it by its pace."""
