"""Declares one setting: `setting` for a value with a place in the YAML file, `secret` for the environment only.

The docstring below a setting explains it in the documents. Type, default and limits are pydantic's own. The type
aliases read text, because the environment and the YAML file are both handed over as text: one way to write a value,
and one error message for both.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, get_args, get_origin
from urllib.parse import urlsplit

from annotated_types import Ge, Le
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.fields import FieldInfo

PROJECT_ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class UrlCheck:
    schemes: tuple[str, ...]
    needs_host: bool = True

    def __call__(self, text: str) -> str:
        parts = urlsplit(text)  # its `port` raises ValueError outside 0 to 65535
        if parts.scheme not in self.schemes or (self.needs_host and not parts.hostname) or parts.port == 0:
            raise ValueError(text)
        return text

    def __str__(self) -> str:
        return "a URL that begins with " + " or ".join(f"{scheme}://" for scheme in self.schemes)


def _split(value: Any) -> Any:
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def _from_root(value: Any) -> Any:
    """Resolves relative paths from the project's folder, not from the working directory."""
    return (PROJECT_ROOT / Path(value).expanduser()).resolve() if isinstance(value, str) else value


def _networks(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(str(ip_network(text)) for text in texts)  # raises ValueError


TextList = Annotated[tuple[str, ...], BeforeValidator(_split)]
NetworkList = Annotated[tuple[str, ...], BeforeValidator(_split), AfterValidator(_networks)]
FilePath = Annotated[Path, BeforeValidator(_from_root)]
OptionalPath = Annotated[Path | None, BeforeValidator(_from_root)]
LowerCase = BeforeValidator(lambda value: value.lower() if isinstance(value, str) else value)
UpperCase = BeforeValidator(lambda value: value.upper() if isinstance(value, str) else value)
HttpUrl = Annotated[str, AfterValidator(UrlCheck(("http", "https")))]
DevToolsUrl = Annotated[str, AfterValidator(UrlCheck(("http", "https", "ws", "wss")))]
PostgresUrl = Annotated[str, AfterValidator(UrlCheck(("postgres", "postgresql"), needs_host=False))]
RedisUrl = Annotated[str, AfterValidator(UrlCheck(("redis", "rediss", "unix"), needs_host=False))]


class Group(BaseModel):
    """Settings that share a section of the YAML file; the docstring is their heading in the documents."""

    model_config = ConfigDict(use_attribute_docstrings=True)
    section: ClassVar[str]

    @classmethod
    def yaml_key(cls, name: str) -> str:
        """Returns the setting's full path in the YAML file; empty if it is read from the environment only."""
        key = _extra(cls.model_fields[name]).get("yaml")
        return f"{cls.section}.{key}" if key else ""


def setting(default: Any, yaml: str, low: float | None = None, high: float | None = None) -> Any:
    return Field(default, ge=low, le=high, json_schema_extra={"yaml": yaml})


def secret(default: Any) -> Any:
    return Field(default, json_schema_extra={"secret": True}, repr=False)


def is_secret(field: FieldInfo) -> bool:
    return bool(_extra(field).get("secret"))


def allowed(field: FieldInfo) -> str:
    """Describes the values that the setting accepts, for error messages and documents."""
    kind: Any = field.annotation
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(get_args(kind))
    for item in field.metadata:
        if isinstance(item, AfterValidator) and isinstance(item.func, UrlCheck):
            return str(item.func)
    if any(isinstance(item, AfterValidator) and item.func is _networks for item in field.metadata):
        return "a list of networks such as 10.0.0.0/8, separated by commas"
    limits = [item for item in field.metadata if isinstance(item, Ge | Le)]
    if limits:
        low, high = (item.ge if isinstance(item, Ge) else item.le for item in limits)
        return f"{'a whole number' if kind is int else 'a number'} from {low:.10g} to {high:.10g}"
    names = {bool: "true or false", str: "text", tuple[str, ...]: "a list separated by commas"}
    return names.get(kind, "a path")


def _extra(field: FieldInfo) -> dict[str, Any]:
    return field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
