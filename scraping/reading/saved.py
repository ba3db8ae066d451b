"""Parses saved responses: finds out by trial which of the adapter's documents they are, and what can be read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from itertools import islice, product
from typing import Any

from scraping.errors import LayoutChanged, SchemaBreak
from scraping.payloads import Figures, Lineups, Payload, UnrecognizedValue
from scraping.reading.access import without_failed_documents
from scraping.readings import FIELDS, PAGE, Document, Endpoint, Reading, ReadMode, RefInfo, Request, Site
from scraping.sources import parsing
from scraping.sources.base import Adapter

KINDS = MATCH, EVENTS, LINEUPS, FIGURES, LIST, FIXTURES, ROUND = (
    *("match", "events", "lineups", "figures"),
    *("list", "fixtures", "round"),
)
MAX_TRIALS = 500  # of one kind
_HEAD = re.compile(rb"(?:<!-- )?(\S+)\n([1-5][0-9]{2}) ([^\n]*?)(?: -->)?\n\n")  # of stored evidence
_DATA = {b"__NEXT_DATA__": b'"props"', b"app-root-state": b"/getSV3"}  # scripts of pages, whose data is saved alone
_ANOTHER_MATCH = re.compile(r"another match: (?:match-)?(\S+) instead of")
_ANOTHER_ROUND = re.compile(r"requested (\w+) -?[0-9]+ and received a match of \w+ ([0-9]+)")
_UNKNOWN_ID = "0"
Parse = Callable[[Reading], Any]


@dataclass(frozen=True)
class Saved:
    """A file. `name`: that of the document, empty where it must be found out; `hint`: what its file is called."""

    label: str
    document: Document
    name: str = ""
    hint: str = ""


@dataclass(frozen=True)
class Trial:
    """One attempt to read documents as something: its result, or its error."""

    kind: str
    reading: Reading
    labels: Mapping[str, str]  # files by the names of the documents
    result: Any = None
    unknown: tuple[UnrecognizedValue, ...] = ()
    error: Exception | None = None

    @property
    def is_found(self) -> bool:
        """Returns whether anything was read; documents of another kind may be read as an empty list."""
        if isinstance(self.result, Lineups):
            return bool(self.result.lineups)
        return bool(self.result.figures if isinstance(self.result, Figures) else self.result)

    @property
    def is_partial(self) -> bool:
        return isinstance(self.result, Payload) and self.result.is_partial_state

    @property
    def missing(self) -> tuple[str, ...]:
        return self.result.integrity.missing_fields if isinstance(self.result, Payload) else ()

    @property
    def broken_parts(self) -> list[dict[str, Any]]:
        integrity = getattr(self.result, "integrity", None)
        return list(integrity.model_dump().get("broken_parts", ())) if integrity is not None else []

    @property
    def rank(self) -> tuple[int, ...]:
        """Returns how well it fits the documents; of errors, the deepest place is that of the right kind."""
        depth = 0
        if isinstance(self.error, SchemaBreak):
            place = self.error.selector.partition(",")[0]
            depth = place.count(".") + place.count("[") + bool(place)
        elif self.error is not None and not isinstance(self.error, LayoutChanged):
            depth = 9  # it was understood, and states another match or a refusal
        quality = -1 if self.error else self.is_found * 2 - self.is_partial
        unread = len(self.missing) + len(self.unknown) + len(self.broken_parts)
        return quality, depth, -unread, len(self.reading.documents)


def saved(label: str, content: bytes, *, name: str = "", hint: str = "") -> Saved:
    """Returns a file's document. Evidence begins with address and status; data of a page's script becomes a page."""
    head = _HEAD.match(content)
    url, status, content_type = (head[1].decode(), int(head[2]), head[3].decode()) if head else ("", 200, "")
    body = content[head.end() :] if head else content
    script = next((one for one, mark in _DATA.items() if body.lstrip()[:1] == b"{" and mark in body), b"")
    if script:
        body = b'<script id="%s">%s</script>' % (script, body)
    return Saved(label, Document(name, url, status, content_type, body), name, hint)


@dataclass(frozen=True)
class Trials:
    """Tries to read files of one source. `kind`: as nothing else; `day`: that of fixtures."""

    adapter: Adapter
    site: Site
    files: Sequence[Saved]
    at: datetime
    day: date
    kind: str = ""
    match_id: str = ""

    def best(self) -> list[Trial]:
        """Returns everything that can be read; where there is nothing, the error that comes closest to it."""
        ref = self._ref()
        tried = {kind: self._best_of(kind, ref) for kind in ([self.kind] if self.kind else KINDS[:-1])}
        trials = {kind: trial for kind, trial in tried.items() if trial is not None}
        listed = trials[LIST].result if LIST in trials else None
        if listed and len(listed) == 1 and MATCH in trials and trials[MATCH].error is not None:
            again = self._best_of(MATCH, RefInfo(listed[0].source_event_id, listed[0].url))
            trials |= {MATCH: again} if again else {}
        found = [trial for trial in trials.values() if trial.error is None and (trial.is_found or self.kind)]
        kinds = {trial.kind for trial in found}
        if LIST in kinds and any(trial.is_partial for trial in found) and ref.source_event_id == _UNKNOWN_ID:
            kinds = {LIST}  # the cards of a list's page look like the header of a match
        about_match = (MATCH, LINEUPS, FIGURES)
        group = about_match if kinds & {*about_match} else tuple(kind for kind in KINDS if kind in kinds)[:1]
        failed = [trial for trial in trials.values() if trial.error is not None]
        return [one for one in found if one.kind in group] or sorted(failed, key=lambda one: one.rank, reverse=True)[:1]

    def _ref(self) -> RefInfo:
        """Returns the match that the address of a document names."""
        for file in self.files:
            match = self.adapter.match_at(file.document.url, self.site.base_url)
            if match is not None and self.match_id in ("", match.source_event_id):
                return RefInfo(match.source_event_id, match.url)
        return RefInfo(self.match_id or _UNKNOWN_ID, self.site.base_url)

    def _best_of(self, kind: str, ref: RefInfo) -> Trial | None:
        """Returns the best of all ways to use the files; None where the source has nothing of this kind."""
        asked = dict.fromkeys(self.adapter.round_fields, 0)
        names, parse = self._reader_of(kind, ref, asked)
        uses = islice(self._uses(names), MAX_TRIALS)
        return max((self._tried(kind, parse, ref, asked, one) for one in uses), key=lambda one: one.rank, default=None)

    def _reader_of(self, kind: str, ref: RefInfo, asked: Mapping[str, int]) -> tuple[list[str], Parse]:
        """Returns the names of the documents of a kind, none where the adapter does not read it, and their parser."""
        adapter, base = self.adapter, self.site.base_url
        planned: Sequence[Request | Endpoint] = ()
        parse: Parse
        if kind in (MATCH, EVENTS):
            planned = (*adapter.endpoints(ref), *adapter.requests(ref, base))
            parse = adapter.parse if kind == MATCH else adapter.parse_events
        elif kind == LINEUPS:
            planned, parse = adapter.lineup_requests(ref, base), adapter.parse_lineups
        elif kind == FIGURES:
            planned, parse = adapter.figure_requests(ref, base), adapter.parse_figures
        elif kind == LIST:
            plan = adapter.list_plan(base)
            planned, parse = (*plan.endpoints, *plan.requests), lambda one: adapter.parse_list(one, base)
        elif kind == FIXTURES:
            fixtures = adapter.fixture_plan(base, self.day)
            planned = fixtures.requests if fixtures else ()
            parse = lambda one: adapter.parse_fixtures(one, base, self.day)  # noqa: E731 - the others are methods
        else:
            planned = adapter.round_plan(base, asked).requests if asked else ()
            parse = lambda one: adapter.parse_round(one, base, asked)  # noqa: E731 - as above
        own = [FIELDS] if kind == MATCH and adapter.layout is not None else []
        names = dict.fromkeys([*(one.name for one in planned), *own])
        return [*names, *([PAGE] if PAGE not in names and (names or kind in (MATCH, LIST)) else [])], parse

    def _uses(self, names: Sequence[str]) -> Iterator[dict[str, Saved]]:
        """Yields the ways to use the files as documents of these names. A file may also be left out."""
        choices = []
        for file in self.files:
            stated = next((name for name in (file.name, file.hint) if name in names), "")
            is_page = file.document.body.lstrip()[:1] == b"<"
            possible = (*(name for name in names if is_page or name != PAGE), "")
            choices.append((stated,) if stated or file.name else possible)
        for chosen in product(*choices):
            used = [name for name in chosen if name]
            if used and len(set(used)) == len(used):
                yield {name: file for name, file in zip(chosen, self.files, strict=True) if name}

    def _tried(self, kind: str, parse: Parse, ref: RefInfo, asked: dict[str, int], files: Mapping[str, Saved]) -> Trial:
        """Parses the files; again with the id of the match, or the numbers of the round, that they state."""
        documents = {name: replace(file.document, name=name) for name, file in files.items()}
        mode, failure = ReadMode.VISIT if PAGE in documents else ReadMode.DIRECT, None
        labels = {name: file.label for name, file in files.items()}
        for _ in range(2 + len(asked)):
            reading = Reading(ref, mode, self.at, documents, selectors=self.site.selectors)
            try:
                with parsing.noting_unrecognized() as unknown:
                    result = parse(without_failed_documents(reading, documents if len(documents) == 1 else ()))
                return Trial(kind, reading, labels, result, (*getattr(result, "unknown", ()), *unknown))
            except Exception as error:  # noqa: BLE001 - also a bug of the adapter is the outcome of a trial
                failure = error
            if ref.source_event_id == _UNKNOWN_ID and (stated := _ANOTHER_MATCH.search(str(failure))):
                ref = replace(ref, source_event_id=stated[1])
            elif stated := _ANOTHER_ROUND.search(str(failure)):
                asked[stated[1]] = int(stated[2])
            else:
                break
        return Trial(kind, reading, labels, error=failure)
