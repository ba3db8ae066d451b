"""Loads the configuration: the environment first, then the YAML file, then the default.

Every problem is collected before the start is refused, so that five mistakes do not need five starts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_settings import BaseSettings, InitSettingsSource, SettingsConfigDict

from victoryline.configuration import scraper_settings as scraper
from victoryline.configuration import service_settings as service
from victoryline.configuration.fields import PROJECT_ROOT, Group, allowed, is_secret

# scheme://host[:port] as a browser sends it; any other entry of CORS_ORIGINS would never match.
ORIGIN = re.compile(r"(https?)://(?:[^\s/?#@*:\[\]]+|\[[0-9a-f:.]+\])(?::(\d+))?", re.IGNORECASE)
DEFAULT_PORTS = {("http", "80"), ("https", "443")}  # browsers leave them out
# A second key for a setting, with the meaning of its values.
YAML_ALIASES = {"scraper.monitoring.logging.structured": ("log_format", {"true": "json", "false": "console"})}


class ConfigError(Exception):
    """The configuration cannot be used; `problems` has one sentence for each reason."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("The configuration has problems:\n" + "\n".join(f"  - {problem}" for problem in problems))


class Config(  # pydantic takes the fields of the last base first
    service.Files,
    service.Demo,
    service.Retention,
    service.Engine,
    service.Web,
    service.Storage,
    service.Alerts,
    service.Monitoring,
    scraper.Adaptive,
    scraper.SourceAccess,
    scraper.Proxies,
    scraper.Browser,
    scraper.Resilience,
    scraper.Resources,
    scraper.Lifecycle,
    BaseSettings,
):
    model_config = SettingsConfigDict(frozen=True, extra="forbid", validate_default=False)


GROUPS: tuple[type[Group], ...] = tuple(
    base for base in reversed(Config.__mro__) if issubclass(base, Group) and base not in (Group, Config)
)
YAML_KEYS = {name: group.yaml_key(name) for group in GROUPS for name in group.model_fields}


Given = dict[str, tuple[str, str]]  # by name of a setting: its text and where it was found


def load(environ: Mapping[str, str], yaml_path: Path | None = None) -> Config:
    """Reads the whole configuration, or raises ConfigError with every problem in it."""
    if yaml_path is None and (named := environ.get("CONFIG_FILE", "").strip()):
        yaml_path = (PROJECT_ROOT / Path(named).expanduser()).resolve()
    problems: list[str] = []
    given = _read_yaml(yaml_path, problems) if yaml_path else {}
    for name, text in environ.items():  # an empty variable counts as not set
        if name.isupper() and text.strip() and name.lower() in Config.model_fields:
            given[name.lower()] = (text.strip(), "environment")
    try:
        config = _build(given)
    except ValidationError as error:
        wrong = {str(one["loc"][0]) for one in error.errors()}
        for name in (name for name in Config.model_fields if name in wrong):
            field, (text, origin) = Config.model_fields[name], given.pop(name)
            shown = "***" if is_secret(field) else f'"{text}"'
            problems.append(f"{name.upper()} is {shown} ({origin}); allowed: {allowed(field)}")
        config = _build(given)
    if problems := problems + list(_contradictions(config)):
        raise ConfigError(problems)
    return config


def _build(given: Given) -> Config:
    values = InitSettingsSource(Config, {name: text for name, (text, _) in given.items()})
    return Config(_build_sources=((values,), {}))


def _read_yaml(path: Path, problems: list[str]) -> Given:
    """Maps the nested keys of the file to settings. Values are turned back into text: see `fields`."""
    document: Any = None
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        problems.append(f'CONFIG_FILE is "{path}"; it can\'t be read: {error.strerror}')
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        problems.append(f"{path.name} is not valid YAML: {' '.join(str(error).split())}")
    if document is not None and not isinstance(document, dict):
        problems.append(f"{path.name} must hold a mapping at its top level")
        document = None
    known = {key: name for name, key in YAML_KEYS.items() if key}
    known |= {key: name for key, (name, _) in YAML_ALIASES.items()}
    given: Given = {}
    for key, value in _leaves(document or {}, known):
        name = known.get(key)
        if name is None:
            problems.append(f"{key} ({path.name}) {_unknown(key, known)}")
        elif isinstance(value, dict):
            problems.append(f"{key} ({path.name}) must be a value, not a section")
        elif value is not None:
            parts = value if isinstance(value, list) else [value]
            text = ",".join(str(part).lower() if isinstance(part, bool) else str(part) for part in parts)
            text = YAML_ALIASES[key][1].get(text, text) if key in YAML_ALIASES else text
            given.setdefault(name, (text, f"{path.name}, {key}"))
    return given


def _leaves(node: Mapping[Any, Any], known: Mapping[str, str], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in node.items():
        key = f"{prefix}{name}"
        is_section = any(one.startswith(f"{key}.") for one in known)
        if isinstance(value, dict) and key not in known:
            yield from _leaves(value, known, f"{key}.")
        elif value is not None or not is_section:
            yield key, value


def _unknown(key: str, known: Mapping[str, str]) -> str:
    last = key.rsplit(".", 1)[-1]
    if last in Config.model_fields and is_secret(Config.model_fields[last]):
        return f"is a secret: set {last.upper()} in the environment, never in a file"
    near = get_close_matches(key, known, n=1, cutoff=0.6)
    return "is not a known key" + (f"; did you mean {near[0]}?" if near else "")


def _contradictions(config: Config) -> Iterator[str]:
    """Yields pairs of values that are valid alone and wrong together."""
    for lower, upper, strictly in (
        ("memory_soft_limit_mb", "memory_hard_limit_mb", True),
        ("retry_base_delay_seconds", "retry_max_delay_seconds", False),
        ("polling_interval_seconds", "staleness_threshold_seconds", True),
        ("rate_limit_standard_per_minute", "rate_limit_premium_per_minute", False),
    ):
        low, high = float(getattr(config, lower)), float(getattr(config, upper))
        if low > high or (strictly and low == high):
            relation = "below" if strictly else "at most"
            yield f"{lower.upper()} is {low:.10g} and {upper.upper()} is {high:.10g}: it must be {relation} that"
    if config.enable_prometheus_metrics and config.port == config.prometheus_port:
        yield f"PORT and PROMETHEUS_PORT are both {config.port}: they must differ"
    for origin in config.cors_origins:
        found = ORIGIN.fullmatch(origin)
        if origin != "*" and (found is None or (found[1].lower(), found[2]) in DEFAULT_PORTS):
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
