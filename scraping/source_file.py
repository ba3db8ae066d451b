"""config/sources.yaml, checked, and written into the database."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import yaml
from django.db import transaction
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from scraping.models import JobKind, MatchRef, ScrapeJob, Source
from scraping.sources import ADAPTERS


class SourceFileError(Exception):
    """The file cannot be used; the message names the place and what is wrong there."""


class RateLimits(BaseModel):
    model_config = ConfigDict(extra="forbid")
    max_concurrent_contexts: int = Field(default=30, ge=1, le=1000)
    min_interval_seconds: float = Field(default=0.5, ge=0, le=3600)
    burst_allowance: int = Field(default=50, ge=1, le=10_000)


class Retry(BaseModel):
    model_config = ConfigDict(extra="forbid")
    max_attempts: int | None = Field(default=None, ge=1, le=100)
    base_seconds: float | None = Field(default=None, ge=0.1, le=3600)


class SourceEntry(BaseModel):
    model_config = ConfigDict(extra="forbid")
    domain_id: str
    name: str
    sport: str
    enabled: bool = False
    precedence_weight: int = Field(default=50, ge=0, le=100)
    base_url: str
    rate_limits: RateLimits = RateLimits()
    retry: Retry = Retry()


class SourceFile(BaseModel):
    model_config = ConfigDict(extra="forbid")
    sources: list[SourceEntry]


def read(path: Path) -> list[SourceEntry]:
    try:
        entries = SourceFile.model_validate(yaml.safe_load(path.read_text(encoding="utf-8"))).sources
    except (OSError, yaml.YAMLError, ValidationError) as error:
        raise SourceFileError(f"{path.name}: {error}") from error
    unknown = [entry.domain_id for entry in entries if entry.domain_id not in ADAPTERS]
    if unknown:
        raise SourceFileError(f"{path.name}: no adapter for {', '.join(unknown)}; there are: {', '.join(ADAPTERS)}")
    return entries


def sync(entries: list[SourceEntry], *, stadium_url: str, is_reset: bool, now: datetime) -> list[Source]:
    """Write the rows that are missing. With a stadium, its address stands in for every source's."""
    with transaction.atomic():
        return [_sync_one(entry, stadium_url, is_reset, now) for entry in entries]


def _sync_one(entry: SourceEntry, stadium_url: str, is_reset: bool, now: datetime) -> Source:
    base_url = f"{stadium_url.rstrip('/')}/{entry.domain_id}" if stadium_url else entry.base_url
    source = Source.objects.filter(key=entry.domain_id).first()
    if source is None:
        source = Source.objects.create(key=entry.domain_id, base_url=entry.base_url, **_columns(entry))
    elif is_reset:
        Source.objects.filter(pk=source.pk).update(**_columns(entry))
    moves = is_reset or bool(stadium_url) or bool(source.metadata.get("is_stadium"))
    if moves:
        _move(source, base_url)
        is_new_here = source.metadata.get("is_stadium") is not bool(stadium_url)
        if is_new_here or is_reset:
            source.is_enabled = bool(stadium_url) or entry.enabled
        source.metadata["is_stadium"] = bool(stadium_url)
        source.allows_private_addresses = bool(stadium_url)
        source.save(update_fields=("base_url", "is_enabled", "metadata", "allows_private_addresses"))
    ScrapeJob.objects.get_or_create(
        kind=JobKind.WATCH, source=source, defaults={"name": f"Watch {source.name}", "created_at": now}
    )
    return source


def _columns(entry: SourceEntry) -> dict[str, Any]:
    """All but the address, which moves together with the matches' addresses."""
    return {
        "name": entry.name,
        "sport": entry.sport,
        "is_enabled": entry.enabled,
        "precedence_weight": entry.precedence_weight,
        "max_concurrency": entry.rate_limits.max_concurrent_contexts,
        "min_interval_seconds": entry.rate_limits.min_interval_seconds,
        "burst_allowance": entry.rate_limits.burst_allowance,
        "max_attempts": entry.retry.max_attempts,
        "retry_base_seconds": entry.retry.base_seconds,
    }


def _move(source: Source, base_url: str) -> None:
    """The source has a new address: so have its matches."""
    if source.base_url == base_url:
        return
    refs = list(MatchRef.objects.filter(source=source, url__startswith=source.base_url))
    for ref in refs:
        ref.url = base_url + ref.url[len(source.base_url) :]
    MatchRef.objects.bulk_update(refs, ("url",), batch_size=500)
    source.base_url = base_url
