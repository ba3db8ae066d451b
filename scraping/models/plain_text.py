"""Text without accents and capitals, so that `Atletico` finds Atlético: the same in Python and in both databases.

No library does it in both: PostgreSQL's `unaccent` is an extension that not every server lets us have, and SQLite
knows capitals of English letters only.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.db.models import Func, TextField

SQLITE_NAME = "victoryline_plain"
_MARKS = "[\u0300-\u036f]"
_marks = re.compile(_MARKS)


@lru_cache(maxsize=16_384)  # a list with `team` compares both names of every match
def plain(text: str) -> str:
    if text.isascii():
        return text.lower()
    return _marks.sub("", unicodedata.normalize("NFKD", text)).lower()


class Plain(Func):
    """`plain` of a column, computed by the database."""

    arity = 1
    output_field = TextField()

    def as_sqlite(self, compiler: Any, connection: Any, **_: Any) -> Any:
        return self.as_sql(compiler, connection, function=SQLITE_NAME)

    def as_postgresql(self, compiler: Any, connection: Any, **_: Any) -> Any:
        template = f"lower(regexp_replace(normalize(%(expressions)s, NFKD), '{_MARKS}', '', 'g'))"
        return self.as_sql(compiler, connection, template=template)


def connect() -> None:
    connection_created.connect(_teach_sqlite, dispatch_uid="scraping.models.plain_text")


def _teach_sqlite(connection: BaseDatabaseWrapper, **_: object) -> None:
    if connection.vendor == "sqlite":
        connection.connection.create_function(SQLITE_NAME, 1, _plain_or_null, deterministic=True)


def _plain_or_null(text: str | None) -> str | None:
    return None if text is None else plain(text)
