"""The addresses of ESPN's API. A match's own is the answer about it; a browser shows it as plain JSON."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

from scraping.payloads import DiscoveredMatch, Sport, Status

SPORTS = "/apis/site/v2/sports"
CRICKET_EXAMPLE = ".../apis/site/v2/sports/cricket/8048/summary?event=1478914"
SOCCER_EXAMPLE = ".../apis/site/v2/sports/soccer/bra.1/scoreboard?dates=20260502#740898"
SERIE_A = "bra.1"
_ID = re.compile(r"[1-9]\d{0,14}", re.ASCII)
_CRICKET = re.compile(rf"{SPORTS}/cricket/(\d{{1,10}})/(?:summary|playbyplay)/?", re.ASCII)
_SOCCER = re.compile(rf"{SPORTS}/soccer/([a-z][\w.-]{{1,60}})/(scoreboard|summary)/?", re.ASCII)
_DATES = re.compile(r"\d{8}(?:-\d{8})?", re.ASCII)


def cricket_list(base_url: str, day: date | None = None) -> str:
    """All cricket of a day, by series. Each series has its own list too, but only this one says which there are."""
    dates = f"?dates={day:%Y%m%d}" if day else ""
    return f"{base_url.rstrip('/')}{SPORTS}/cricket/scorepanel{dates}"


def summary(base_url: str, league: str, event: str) -> str:
    return f"{base_url.rstrip('/')}{SPORTS}/cricket/{league}/summary?event={event}"


def plays(base_url: str, league: str, event: str, *, page: int | None = None, period: int | None = None) -> str:
    """Without a page the source answers with the first one, and with how many there are; `period`: one innings only."""
    wanted = f"{f'&period={period}' if period else ''}{f'&page={page}' if page else ''}"
    return f"{base_url.rstrip('/')}{SPORTS}/cricket/{league}/playbyplay?event={event}{wanted}"


def league_of(url: str) -> str:
    """The number of the series in a cricket match's address: the source finds a match only under its own."""
    found = re.search(rf"{SPORTS}/cricket/(\d{{1,10}})/", url, re.ASCII)
    return found[1] if found else "0"


def number_in(url: str, name: str) -> int | None:
    """Which page or period of the plays an address asks for, where it says so."""
    asked = parse_qs(urlsplit(url).query).get(name, [""])[0]
    return int(asked) if asked.isascii() and asked.isdecimal() and len(asked) < 6 else None


def soccer_list(base_url: str, league: str = SERIE_A, dates: str = "") -> str:
    return f"{base_url.rstrip('/')}{SPORTS}/soccer/{league}/scoreboard{f'?dates={dates}' if dates else ''}"


def soccer_match(base_url: str, league: str, event: str, start: datetime) -> str:
    return f"{soccer_list(base_url, league, dates_of(start.date()))}#{event}"


def soccer_summary(url: str, base_url: str, event: str) -> str:
    """The match's own answer, in the league that its address names."""
    found = re.search(rf"{SPORTS}/soccer/([a-z][\w.-]{{1,60}})/", url, re.ASCII)
    return f"{base_url.rstrip('/')}{SPORTS}/soccer/{found[1] if found else SERIE_A}/summary?event={event}"


def soccer_request(url: str, base_url: str) -> str:
    """What to ask for a match: its address as it is known, at the place where the source lives now."""
    parts = urlsplit(url)
    path = parts.path[parts.path.find(SPORTS) :] if SPORTS in parts.path else parts.path
    query = f"?{parts.query}" if parts.query else ""
    return f"{base_url.rstrip('/')}{path}{query}"


def dates_of(day: date) -> str:
    """ESPN's days are those of New York: what begins early in a day of ours, it lists under the day before."""
    return f"{day - timedelta(days=1):%Y%m%d}-{day:%Y%m%d}" if day > date.min else f"{day:%Y%m%d}"


def cricket_match_at(url: str, base_url: str) -> DiscoveredMatch | None:
    base, parts = base_url.rstrip("/"), urlsplit(url)
    path = _CRICKET.fullmatch(parts.path.removeprefix(urlsplit(base).path))
    event = parse_qs(parts.query).get("event", [""])[0]
    if path is None or not _ID.fullmatch(event):
        return None
    return DiscoveredMatch(
        source_event_id=event,
        url=summary(base, path[1], event),
        sport=Sport.CRICKET,
        status=Status.UPCOMING,  # until it is read
    )


def soccer_match_at(url: str, base_url: str) -> DiscoveredMatch | None:
    """A day's list needs the match's number behind #; the summary of a match names it itself."""
    base, parts = base_url.rstrip("/"), urlsplit(url)
    path = _SOCCER.fullmatch(parts.path.removeprefix(urlsplit(base).path))
    if path is None:
        return None
    asked = parse_qs(parts.query)
    dates, event = asked.get("dates", [""])[0], asked.get("event", [""])[0]
    if path[2] == "summary":
        known = soccer_summary(url, base, event)
    else:
        event = parts.fragment
        known = f"{soccer_list(base, path[1], dates)}#{event}" if _DATES.fullmatch(dates) else ""
    if not known or not _ID.fullmatch(event):
        return None
    return DiscoveredMatch(source_event_id=event, url=known, sport=Sport.FOOTBALL, status=Status.UPCOMING)
