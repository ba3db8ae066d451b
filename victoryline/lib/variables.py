"""How a table of typed variables is declared; `config_reader` reads it.

A table is a frozen dataclass whose fields are made by the functions below (`whole`, `number`, `flag`, ...), so that a
variable's type, default, limits, place in the YAML file and explanation stand in one place.
"""

from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

T = TypeVar("T")
TRUE, FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off")


class ConfigError(Exception):
    """The configuration can't be used; `problems` says why, one sentence each."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("The configuration has problems:\n" + "\n".join(f"  - {problem}" for problem in problems))


@dataclass(frozen=True, kw_only=True)
class Variable:
    """One row of a table. `parse` raises ValueError for text that isn't of the variable's type."""

    parse: Callable[[str], Any]
    kind: str
    help: str
    default: Any
    yaml: str = ""
    yaml_words: tuple[str, Mapping[str, str]] = ("", {})
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    secret: bool = False
    planned: str = ""

    @property
    def allowed(self) -> str:
        if self.choices:
            return "one of " + ", ".join(self.choices)
        if self.low is not None and self.high is not None:
            return f"{self.kind} from {self.low:.10g} to {self.high:.10g}"
        return self.kind

    def read(self, text: str) -> Any:
        value = self.parse(text)
        if self.choices and value not in self.choices:
            raise ValueError(text)
        if self.low is not None and not self.low <= value <= (self.high if self.high is not None else value):
            raise ValueError(text)
        return value


def _declare(variable: Variable) -> Any:
    return field(default=variable.default, metadata={"variable": variable})


def whole(default: int, help: str, *, low: int, high: int, yaml: str = "", planned: str = "") -> int:
    declared: int = _declare(
        Variable(
            parse=int, kind="a whole number", help=help, default=default, yaml=yaml, low=low, high=high, planned=planned
        )
    )
    return declared


def number(default: float, help: str, *, low: float, high: float, yaml: str = "", planned: str = "") -> float:
    declared: float = _declare(
        Variable(
            parse=float, kind="a number", help=help, default=default, yaml=yaml, low=low, high=high, planned=planned
        )
    )
    return declared


def flag(default: bool, help: str, *, yaml: str = "", planned: str = "") -> bool:
    declared: bool = _declare(
        Variable(parse=_parse_flag, kind="true or false", help=help, default=default, yaml=yaml, planned=planned)
    )
    return declared


def word(default: str, help: str, *, yaml: str = "", secret: bool = False, planned: str = "") -> str:
    declared: str = _declare(
        Variable(parse=str, kind="text", help=help, default=default, yaml=yaml, secret=secret, planned=planned)
    )
    return declared


def choice(
    default: str,
    help: str,
    *,
    choices: tuple[str, ...],
    yaml: str = "",
    yaml_words: tuple[str, Mapping[str, str]] = ("", {}),
    planned: str = "",
) -> str:
    """`yaml_words` is a second place in the file whose words stand for choices, such as `structured: true` for json."""
    by_lower = {each.lower(): each for each in choices}
    declared: str = _declare(
        Variable(
            parse=lambda text: by_lower.get(text.lower(), text),
            kind="a word",
            help=help,
            default=default,
            yaml=yaml,
            yaml_words=yaml_words,
            choices=choices,
            planned=planned,
        )
    )
    return declared


def url(
    help: str, *, schemes: tuple[str, ...], yaml: str = "", host: bool = True, secret: bool = False, planned: str = ""
) -> str:
    def parse(text: str) -> str:
        parts = urlsplit(text)
        if parts.scheme not in schemes or (host and not parts.hostname) or parts.port == 0:
            raise ValueError(text)  # as `port` itself does where it is no number from 0 to 65535
        return text

    kind = "a URL that begins with " + " or ".join(f"{scheme}://" for scheme in schemes)
    declared: str = _declare(
        Variable(parse=parse, kind=kind, help=help, default="", yaml=yaml, secret=secret, planned=planned)
    )
    return declared


def path(default: T, help: str, *, root: Path, yaml: str = "") -> T:
    """A relative path starts at `root`, so that the folder a command is typed in never matters."""
    declared: T = _declare(
        Variable(
            parse=lambda text: (root / Path(text).expanduser()).resolve(),
            kind="a path",
            help=help,
            default=default,
            yaml=yaml,
        )
    )
    return declared


def words(default: tuple[str, ...], help: str, *, yaml: str = "", secret: bool = False) -> tuple[str, ...]:
    declared: tuple[str, ...] = _declare(
        Variable(
            parse=lambda text: tuple(part.strip() for part in text.split(",") if part.strip()),
            kind="a list separated by commas",
            help=help,
            default=default,
            yaml=yaml,
            secret=secret,
        )
    )
    return declared


def table(config: type[Any]) -> dict[str, Variable]:
    """Variable by environment name, in the order of declaration."""
    return {each.name.upper(): _variable(each) for each in fields(config)}


def _variable(each: "Field[Any]") -> Variable:
    variable: Variable = each.metadata["variable"]
    return variable


def _parse_flag(text: str) -> bool:
    if text.lower() not in TRUE + FALSE:
        raise ValueError(text)
    return text.lower() in TRUE
