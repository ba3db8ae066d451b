"""The filters of match lists. They are applied in memory only, so that a list means the same while the database is
away; see `cache.DocumentCache.page`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from scraping.documents.cached_match import CachedMatch
from scraping.models import MatchLifecycle
from scraping.names import plain


@dataclass(frozen=True, kw_only=True)
class MatchFilter:
    """Which matches to list. Archived ones only if requested by their lifecycle."""

    status: str = ""  # one, or several separated by commas
    sport: str = ""
    source: str = ""
    lifecycle: str = ""
    series: str = ""  # a part of its name
    team: str = ""  # a part of one team's name
    start_from: datetime | None = None  # inclusive
    start_to: datetime | None = None  # exclusive
    updated_since: datetime | None = None

    @property
    def is_archive(self) -> bool:
        return self.lifecycle == MatchLifecycle.ARCHIVED

    def accepts(self, match: CachedMatch) -> bool:
        return (
            (match.lifecycle == self.lifecycle if self.lifecycle else match.lifecycle != MatchLifecycle.ARCHIVED)
            and (not self.status or match.status in self.status.split(","))
            and self.sport in {"", match.sport}
            and (not self.source or any(ref.source == self.source for ref in match.refs))
            and (not self.team or any(plain(self.team) in plain(name) for name in (match.team_a, match.team_b)))
            and (not self.series or plain(self.series) in plain(match.series))
            and _is_between(match.start_time, self.start_from, self.start_to)
            and _is_between(match.changed_at, self.updated_since, None)
        )


def _is_between(moment: datetime | None, start: datetime | None, end: datetime | None) -> bool:
    if start is None and end is None:
        return True
    return moment is not None and (start is None or moment >= start) and (end is None or moment < end)
