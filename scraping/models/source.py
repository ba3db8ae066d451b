"""A web site that we read: one row, one adapter."""

from __future__ import annotations

from datetime import UTC

from django.db import models

from scraping.readings import Site

PUSHED = "pushed"  # the key of the one source that is never read: its matches are sent in, see jobs.submissions


class RobotsPolicy(models.TextChoices):
    OBEY = "obey"
    WARN = "warn"
    IGNORE = "ignore"


class ReadWay(models.TextChoices):
    """The read mode of a source's matches."""

    AUTO = "auto"  # requested where a visit has shown how, directly or in a page as the source accepts; else visited
    DIRECT = "direct"  # requested, never in a page
    IN_PAGE = "in_page"  # requested, always in a page
    VISIT = "visit"  # the page is opened every time
    ATTACHED = "attached"  # the page stays open and updates itself


class Source(models.Model):
    key = models.SlugField(max_length=40, unique=True)
    name = models.CharField(max_length=80)
    sport = models.CharField(max_length=20)
    base_url = models.URLField(max_length=300)
    is_enabled = models.BooleanField(
        default=True, help_text="Takes effect at the next scheduler tick, without a restart."
    )
    precedence_weight = models.PositiveSmallIntegerField(
        default=50, help_text="0 to 100; where two sources disagree, the one with the larger number counts."
    )
    max_concurrency = models.PositiveSmallIntegerField(default=30, help_text="Open tasks at the same time.")
    min_interval_seconds = models.FloatField(
        default=0.04, help_text="On average one task begins at the source in this time; 0: no limit."
    )
    burst_allowance = models.PositiveSmallIntegerField(default=50, help_text="Tasks that may begin at once.")
    max_attempts = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text="The first one included. Empty: one and RETRY_MAX_ATTEMPTS retries."
    )
    retry_base_seconds = models.FloatField(null=True, blank=True, help_text="Empty: RETRY_BASE_DELAY_SECONDS.")
    retry_jitter_seconds = models.FloatField(
        null=True, blank=True, help_text="Added to a pause at random, at most. Empty: up to the length of the pause."
    )
    adapter = models.SlugField(
        max_length=40, blank=True, help_text="Which adapter reads it. Empty: the one with the source's key."
    )
    read_way = models.CharField(max_length=10, choices=ReadWay, default=ReadWay.AUTO)
    api_hosts = models.JSONField(
        default=list,
        blank=True,
        help_text="Hosts besides its own that its pages may request; no other host is ever reached.",
    )
    allows_private_addresses = models.BooleanField(
        default=False, help_text="Its host may be on this machine or in a private network. Never for a public site."
    )
    uses_proxy = models.BooleanField(default=True, help_text="Reads it through the proxies, where any are configured.")
    daily_megabytes = models.PositiveIntegerField(
        default=0, help_text="Traffic allowed per day (UTC); 0: no limit. At 100 % nothing is visited any more."
    )
    token_url = models.URLField(
        max_length=300, blank=True, help_text="Address of its token service. Empty: it needs no token."
    )
    selectors = models.JSONField(
        default=dict,
        blank=True,
        help_text="CSS or XPath by field, best first; fields without an entry use the adapter's own.",
    )
    canary_matches = models.JSONField(
        default=list,
        blank=True,
        help_text="Ids of matches at the source. While its breaker is half open only these are read, as its probes, "
        "if one of them is due within a minute. Otherwise, or if empty: the most urgent ones.",
    )
    paused_resources = models.CharField(
        max_length=200, blank=True, help_text="Types of tasks that an operator has paused, separated by spaces."
    )
    robots_policy = models.CharField(max_length=10, choices=RobotsPolicy, default=RobotsPolicy.OBEY)
    request_mode = models.CharField(
        max_length=10, blank=True, help_text="Learned from refusals: in_page or visit. Empty: requested directly."
    )
    request_mode_reason = models.CharField(max_length=200, blank=True)
    request_mode_since = models.DateTimeField(null=True, blank=True)
    direct_again_at = models.DateTimeField(null=True, blank=True, help_text="When a direct request is tried again.")
    direct_pause_seconds = models.FloatField(null=True, blank=True, help_text="The latest pause of direct requests.")
    last_discovery_at = models.DateTimeField(null=True, blank=True)
    last_fixtures_at = models.DateTimeField(null=True, blank=True, help_text="When its fixtures were last read.")
    metadata = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ("key",)
        constraints = (
            models.CheckConstraint(
                condition=models.Q(precedence_weight__lte=100), name="source_precedence_at_most_100"
            ),
            models.CheckConstraint(condition=models.Q(max_concurrency__gte=1), name="source_concurrency_at_least_1"),
        )

    def __str__(self) -> str:
        return self.name

    @property
    def adapter_key(self) -> str:
        return self.adapter or self.key

    @property
    def is_pushed(self) -> bool:
        """Returns whether its matches are sent in: nothing is ever read there."""
        return self.key == PUSHED

    @property
    def learned_mode(self) -> str:
        """Returns in one line how its endpoints are requested, if not directly; empty otherwise."""
        if not self.request_mode or self.request_mode_since is None or self.direct_again_at is None:
            return ""
        since, again = (
            f"{at.astimezone(UTC):%d %b %H:%M:%S}" for at in (self.request_mode_since, self.direct_again_at)
        )
        return f"{self.request_mode} since {since}, direct again at {again} UTC ({self.request_mode_reason})"

    @property
    def site(self) -> Site:
        """Returns the part of the row that a reader needs, so that readers query no table."""
        return Site(
            key=self.key,
            base_url=self.base_url,
            adapter_key=self.adapter_key,
            api_hosts=tuple(self.api_hosts),
            allows_private=self.allows_private_addresses,
            read_way=self.read_way,
            robots_policy=self.robots_policy,
            uses_proxy=self.uses_proxy,
            token_url=self.token_url,
            selectors={name: tuple(found) for name, found in self.selectors.items()},
        )


class SourceOverride(models.Model):
    """A setting of a source that an operator has replaced until a time. Sole writer: recovery.source_overrides.

    The source's row holds the value in effect, so that every reader of it obeys; `before` is what the end restores.
    """

    source = models.ForeignKey(Source, on_delete=models.CASCADE, related_name="overrides")
    setting = models.CharField(max_length=40, help_text="A column of the source.")
    value = models.JSONField()
    before = models.JSONField()
    until = models.DateTimeField()
    reason = models.CharField(max_length=150)
    actor = models.CharField(max_length=150)
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("source", "setting"),
                condition=models.Q(ended_at__isnull=True),
                name="override_one_open_per_setting",
            ),
        )

    def __str__(self) -> str:
        return f"{self.setting.replace('_', ' ')} {self.value} instead of {self.before}"
