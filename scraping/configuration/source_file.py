"""Reads config/sources.yaml and config/teams.yaml and writes them to the tables of sources and of team aliases."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import yaml
from django.db import transaction
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from scraping.models import JobKind, MatchRef, ScrapeJob, Source, TeamAlias
from scraping.models.source import PUSHED, ReadWay, RobotsPolicy
from scraping.names import squeezed
from scraping.payloads import Sport
from scraping.readings import split_host
from scraping.sources import ADAPTERS, reading_problem

_HOST = re.compile(r"(?=.{1,253}$)[a-z0-9](?:[a-z0-9-]{0,62})(?:\.[a-z0-9](?:[a-z0-9-]{0,62}))*", re.ASCII)
_SECRET = re.compile(r"key|token|secret|password|credential", re.IGNORECASE)
# Fields of an entry that are columns of the source with the same name.
SAME_NAMES = (
    *("name", "sport", "precedence_weight", "adapter", "read_way", "robots_policy", "api_hosts", "selectors"),
    *("allows_private_addresses", "uses_proxy", "daily_megabytes", "canary_matches"),
)


class SourceFileError(Exception):
    """The file is invalid; the message names the place and the problem."""


def _web_address(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must be an address that begins with http:// or https://")
    if parts.username or parts.password:
        raise ValueError("must hold no user and no password; those belong into the environment")
    return text


def _host(text: str) -> str:
    """Accepts a host name with an optional port, not an address."""
    lowered = text.lower()
    name, _ = split_host(lowered)
    if any(mark in text for mark in "/@?#*") or not (_HOST.fullmatch(name) or lowered.count(":") > 1):
        raise ValueError(f"{text!r} is not the bare name of a host, such as api.example.com")
    return lowered


WebAddress = Annotated[str, Field(max_length=300), AfterValidator(_web_address)]
Host = Annotated[str, AfterValidator(_host)]
Selector = Annotated[str, Field(min_length=1, max_length=500)]
Team = Annotated[str, Field(min_length=1, max_length=120)]
# The section `nations` holds for every sport.
_TEAMS = TypeAdapter(dict[Sport | Literal["nations"], dict[Team, list[Team]]])


def _key_of_class(name: str) -> str:
    """Returns the key of the adapter with this class; empty without a name. Raises ValueError for an unknown one."""
    classes = {type(adapter).__name__: key for key, adapter in ADAPTERS.items()}
    if name and name not in classes:
        raise ValueError(f"adapter_class: no adapter {name[:60]!r}; there are: {', '.join(classes)}")
    return classes.get(name, "")


class RateLimits(BaseModel):
    model_config = ConfigDict(extra="forbid")
    max_concurrent_contexts: int = Field(default=30, ge=1, le=1000)
    min_interval_seconds: float = Field(default=0.04, ge=0, le=3600)
    burst_allowance: int = Field(default=50, ge=1, le=10_000)


class Retry(BaseModel):
    model_config = ConfigDict(extra="forbid")
    max_attempts: int | None = Field(default=None, ge=1, le=100)
    base_seconds: float | None = Field(default=None, ge=0.1, le=3600)
    jitter_seconds: float | None = Field(default=None, ge=0, le=3600)


class SourceEntry(BaseModel):
    """One source. `adapter_class` names its adapter by the class, with any path; `metadata` may hold `base_url`."""

    model_config = ConfigDict(extra="forbid")
    domain_id: str = Field(min_length=1, max_length=40)
    name: str
    sport: str
    enabled: bool = False
    precedence_weight: int = Field(default=50, ge=0, le=100)
    base_url: WebAddress
    adapter: str = ""
    adapter_class: str = ""
    metadata: dict[str, Any] = {}
    read_way: ReadWay = ReadWay.AUTO
    robots_policy: RobotsPolicy = RobotsPolicy.OBEY
    api_hosts: list[Host] = []
    allows_private_addresses: bool = False
    uses_proxy: bool = True
    daily_megabytes: int = Field(default=0, ge=0, le=1_000_000)
    canary_matches: list[Annotated[str, Field(min_length=1, max_length=80)]] = []
    token_url: WebAddress | None = None
    selectors: dict[str, Annotated[list[Selector], Field(min_length=1)]] = {}
    in_stadium: bool = True
    rate_limits: RateLimits = RateLimits()
    retry: Retry = Retry()

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, entry: Any) -> Any:
        """Fills what the entry leaves to its adapter and its metadata: adapter, name, sport, address, selectors."""
        if not isinstance(entry, dict):
            return entry
        given = entry.get("metadata")
        metadata: dict[str, Any] = given if isinstance(given, dict) else {}
        key, class_name = entry.get("domain_id"), str(entry.get("adapter_class") or "").rpartition(".")[2]
        adapter_key = entry.get("adapter") or _key_of_class(class_name) or key
        found: dict[str, Any] = {"adapter": adapter_key} if adapter_key != key else {}
        if (adapter := ADAPTERS.get(str(adapter_key))) is not None:
            found |= {"sport": adapter.sport.value, "name": str(key).capitalize()}
        if secret := next((name for name in metadata if _SECRET.search(str(name))), ""):
            raise ValueError(f"metadata: {str(secret)[:40]} belongs into the environment (SOURCE_CREDENTIALS)")
        moved = {name: metadata[name] for name in ("base_url", "selectors") if name in metadata}
        rest = {"metadata": {name: value for name, value in metadata.items() if name not in moved}}
        return {**found, **moved, **entry, **(rest if metadata else {})}

    @property
    def adapter_key(self) -> str:
        return self.adapter or self.domain_id

    def token_url_at(self, base_url: str) -> str:
        """Returns the address of the token service, moved with the site where it is a part of it."""
        url, own = self.token_url or "", self.base_url.rstrip("/")
        return base_url.rstrip("/") + url.removeprefix(own) if url.startswith(f"{own}/") else url


class SourceFile(BaseModel):
    model_config = ConfigDict(extra="forbid")
    sources: list[SourceEntry]


def read(path: Path) -> list[SourceEntry]:
    try:
        entries = SourceFile.model_validate(yaml.safe_load(path.read_text(encoding="utf-8"))).sources
    except (OSError, yaml.YAMLError, ValidationError) as error:
        raise SourceFileError(f"{path.name}: {error}") from error
    read_ones = [entry for entry in entries if entry.domain_id != PUSHED]
    unknown = [entry.adapter_key for entry in read_ones if entry.adapter_key not in ADAPTERS]
    if unknown:
        raise SourceFileError(f"{path.name}: no adapter for {', '.join(unknown)}; there are: {', '.join(ADAPTERS)}")
    for entry in read_ones:
        if problem := reading_problem(ADAPTERS[entry.adapter_key], entry.read_way, entry.selectors):
            raise SourceFileError(f"{path.name}: {entry.domain_id}: {problem}")
    return entries


def sync(
    entries: list[SourceEntry],
    *,
    stadium_url: str,
    is_reset: bool,
    now: datetime,
    stadium_sites: Collection[str] | None = None,
) -> list[Source]:
    """Writes missing rows, with `is_reset` also changed ones. With a stadium, every source gets an address of it.

    `stadium_sites`: the sites that have matches in the stadium's programme, if known; the others are disabled.
    """
    with transaction.atomic():
        return [_sync_one(entry, stadium_url, stadium_sites, is_reset, now) for entry in entries]


def _sync_one(
    entry: SourceEntry, stadium_url: str, stadium_sites: Collection[str] | None, is_reset: bool, now: datetime
) -> Source:
    base_url = f"{stadium_url.rstrip('/')}/{entry.domain_id}" if stadium_url else entry.base_url
    source = Source.objects.filter(key=entry.domain_id).first()
    if source is None:
        columns = {"base_url": entry.base_url, "metadata": entry.metadata, **_columns(entry)}
        source = Source.objects.create(key=entry.domain_id, **columns)
    elif is_reset:
        source.metadata |= entry.metadata
        Source.objects.filter(pk=source.pk).update(**_columns(entry))
    if source.is_pushed:  # it has no site: nothing to move and nothing to watch
        source.refresh_from_db()
        return source
    moves = is_reset or bool(stadium_url) or bool(source.metadata.get("is_stadium"))
    if moves:
        _move(source, base_url)
        is_shown = not stadium_url or stadium_sites is None or entry.domain_id in stadium_sites
        is_new_here = source.metadata.get("is_stadium") is not bool(stadium_url)
        if is_new_here or is_reset or source.metadata.get("is_shown", True) is not is_shown:
            source.is_enabled = entry.in_stadium and is_shown if stadium_url else entry.enabled
        source.metadata |= {"is_stadium": bool(stadium_url), "is_shown": is_shown}
        source.allows_private_addresses = bool(stadium_url) or entry.allows_private_addresses
        source.token_url = entry.token_url_at(base_url)
        source.save(update_fields=("base_url", "is_enabled", "metadata", "allows_private_addresses", "token_url"))
    ScrapeJob.objects.get_or_create(
        kind=JobKind.WATCH, source=source, defaults={"name": f"Watch {source.name}", "created_at": now}
    )
    return source


def _columns(entry: SourceEntry) -> dict[str, Any]:
    """Returns all columns but the address, which moves together with the addresses of matches."""
    return {
        **{name: getattr(entry, name) for name in SAME_NAMES},
        "is_enabled": entry.enabled,
        "max_concurrency": entry.rate_limits.max_concurrent_contexts,
        "min_interval_seconds": entry.rate_limits.min_interval_seconds,
        "burst_allowance": entry.rate_limits.burst_allowance,
        "max_attempts": entry.retry.max_attempts,
        "retry_base_seconds": entry.retry.base_seconds,
        "retry_jitter_seconds": entry.retry.jitter_seconds,
        "token_url": entry.token_url or "",
    }


def _move(source: Source, base_url: str) -> None:
    """Changes the address of a source and of its matches."""
    if source.base_url == base_url:
        return
    refs = list(MatchRef.objects.filter(source=source, url__startswith=source.base_url))
    for ref in refs:
        ref.url = base_url + ref.url[len(source.base_url) :]
    MatchRef.objects.bulk_update(refs, ("url",), batch_size=500)
    source.base_url = base_url


def read_teams(path: Path) -> list[TeamAlias]:
    """Returns the aliases of the file, not saved. An alias of two teams is refused."""
    try:
        teams = _TEAMS.validate_python(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, yaml.YAMLError, ValidationError) as error:
        raise SourceFileError(f"{path.name}: {error}") from error
    found: dict[tuple[str, str], TeamAlias] = {}
    for sport, name, alias in _entries(teams):
        row = TeamAlias(sport=sport.value, alias=alias, name=name, squeezed=squeezed(alias))
        first = found.setdefault((row.sport, row.squeezed), row)
        if first.name != name:
            raise SourceFileError(f"{path.name}: {sport.value}: {alias} is {first.name} and {name}")
    return list(found.values())


def _entries(teams: Mapping[Sport | Literal["nations"], Mapping[str, list[str]]]) -> Iterator[tuple[Sport, str, str]]:
    for section, named in teams.items():
        for sport in (section,) if isinstance(section, Sport) else Sport:
            for name, aliases in named.items():
                yield from ((sport, name, alias) for alias in aliases)


def sync_teams(rows: list[TeamAlias], *, is_reset: bool) -> int:
    """Writes missing aliases, with `is_reset` also changed ones; returns how many the file has."""
    if is_reset:
        TeamAlias.objects.bulk_create(
            rows, update_conflicts=True, unique_fields=("sport", "squeezed"), update_fields=("alias", "name")
        )
    else:
        TeamAlias.objects.bulk_create(rows, ignore_conflicts=True)
    return len(rows)
