"""The SQL statement of a failed database call, for the log: kept with the exception, without any value.

Guards against a database error in the log that does not say which statement failed, and against match data or secrets
in the log: values are parameters, which are never logged, and a literal in the text of a statement is hidden too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

MAX_CHARACTERS = 1000
_LITERAL = re.compile(r"'(?:[^']|'')*'?")
_PLACEHOLDERS = re.compile(r"\((?:%s, ){3,}%s\)(?:, \((?:%s, )*%s\))*|%s(?:, %s){3,}")
# PostgreSQL quotes the statement, and the values of a row, in its message.
_QUOTED = re.compile(r"^((?:LINE \d+|DETAIL|CONTEXT):\s+).*(?:\n[ \t]*\^)?", re.MULTILINE)
_ATTRIBUTE = "_victoryline_statement"


def install() -> None:
    """Keeps the statement of every failing call of every connection of this process."""
    connection_created.connect(_watch, dispatch_uid="victoryline.lib.statements")


def _watch(sender: object, *, connection: BaseDatabaseWrapper, **_: Any) -> None:
    if _run not in connection.execute_wrappers:
        connection.execute_wrappers.insert(0, _run)


def _run(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
    try:
        return execute(sql, params, many, context)
    except Exception as error:
        setattr(error, _ATTRIBUTE, sql)
        for one in _chain(error):
            one.args = tuple(_QUOTED.sub(r"\1***", arg) if isinstance(arg, str) else arg for arg in one.args)
        raise


def statement_of(error: BaseException | None) -> dict[str, str]:
    """Returns {"sql": the failed statement without values} for a log line; empty if no statement failed."""
    for one in _chain(error):
        if sql := getattr(one, _ATTRIBUTE, ""):
            return {"sql": shown(sql)}
    return {}


def shown(sql: str) -> str:
    """Returns a statement without literals and with long lists of placeholders shortened."""
    return _PLACEHOLDERS.sub("(...)", _LITERAL.sub("'***'", " ".join(sql.split())))[:MAX_CHARACTERS]


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
