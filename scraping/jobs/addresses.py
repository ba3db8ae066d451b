"""Addresses that people give: each is a match at one of our sources, or it is named with what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

from scraping.jobs.refusal import Refused
from scraping.models import MatchRef, Source
from scraping.payloads import DiscoveredMatch
from scraping.sources import ADAPTERS, adapter_for

MAX_LENGTH = MatchRef._meta.get_field("url").max_length or 500  # noqa: SLF001 - Django's documented way to a field
SHOWN = 200
REASONS = 50

Found = dict[Source, list[DiscoveredMatch]]


def recognise(urls: Iterable[str]) -> Found:
    """The matches behind the addresses, each once, by source. Refused names every address that is none."""
    sources = [source for source in Source.objects.all() if source.adapter_key in ADAPTERS]
    found: Found = {}
    bad: list[str] = []
    for url in dict.fromkeys(url.strip() for url in urls):
        try:
            source, match = _recognised(url, sources)
        except ValueError as reason:
            bad.append(f"{url[:SHOWN]}: {reason}")
            continue
        listed = found.setdefault(source, [])
        if match.source_event_id not in {one.source_event_id for one in listed}:
            listed.append(match)
    if bad:
        more = [f"and {len(bad) - REASONS} more"] if len(bad) > REASONS else []
        raise Refused("urls", *bad[:REASONS], *more)
    return dict(sorted(found.items(), key=lambda item: item[0].pk))


def _recognised(url: str, sources: Sequence[Source]) -> tuple[Source, DiscoveredMatch]:
    """ValueError with the reason."""
    if not url.isprintable() or not 1 <= len(url) <= MAX_LENGTH:
        raise ValueError(f"an address has from 1 to {MAX_LENGTH} characters, all of them printable")
    source = next((one for one in sources if _is_at(url, one.base_url)), None)
    if source is None:
        known = ", ".join(sorted(one.base_url for one in sources)) or "none yet: run manage.py sync_sources"
        raise ValueError(f"it is at none of our sources ({known})")
    if not source.is_enabled:
        raise ValueError(f"{source.name} is switched off; switch it on in the admin first")
    adapter = adapter_for(source.adapter_key)
    match = adapter.match_at(url, source.base_url)
    if match is None or len(match.url) > MAX_LENGTH:
        raise ValueError(f"it is not the address of a match; those look like {adapter.address_example}")
    return source, match


def _is_at(url: str, base_url: str) -> bool:
    """Scheme, host, port and folder are the source's own: nothing else is ever visited."""
    try:
        given, base = urlsplit(url), urlsplit(base_url.rstrip("/"))
    except ValueError:  # such as http://[
        return False
    return (given.scheme, given.netloc) == (base.scheme, base.netloc) and given.path.startswith(f"{base.path}/")
