"""Rows of lists and parts of responses that could not be read: reported as an error, with the response as evidence.

Guards against data that goes missing unnoticed: such a part fails no task, because the rest of the reading is used.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from scraping.errors import SchemaBreak
from scraping.journal import Claim, error_log, evidence
from scraping.journal.error_log import ErrorReport
from scraping.models import Evidence, MatchRef, Source
from scraping.payloads import Parsed
from scraping.readings import AttemptEvidence, Reading, attach_evidence, evidence_from
from scraping.sources import parsing
from scraping.worker.engine import Engine

REPORTED_EVERY = timedelta(hours=1)  # for one cause: later readings mostly have the same parts
MOST_NAMED = 5


class LeftOut:
    """Collects what the readings of one task leave out, and reports the first of it."""

    def __init__(self, claim: Claim, source: Source, ref: MatchRef | None = None) -> None:
        self._claim, self._source, self._ref = claim, source, ref
        self._error: SchemaBreak | None = None
        self._files: tuple[ErrorReport, list[Evidence]] | None = None

    @contextmanager
    def rows_of(self, reading: Reading, engine: Engine) -> Iterator[None]:
        """Notes the rows of a list that parsing in the body leaves out. An error that it raises gets the evidence."""
        with evidence_from(reading), parsing.noting_unrecognized() as unknown:
            yield
        parsed = Parsed(
            source=self._source.key,
            payload_schema=f"{self._source.adapter_key}.list",
            captured_at=reading.captured_at,
            source_event_id="",
            unknown=tuple(unknown),
        )
        engine.read_stats.unknown(self._source.key, parsed)
        rows = [one.value for one in unknown if one.path == parsing.LIST_ROW]
        if rows:
            count = f"at least {len(rows)}" if len(unknown) == parsing.MAX_UNRECOGNIZED else str(len(rows))
            self._note(f"rows of a list could not be read and are left out: {count}, the first one: {rows[0]}", reading)

    def parts_of(self, reading: Reading, parsed: Parsed, *, known: Collection[str] = ()) -> None:
        """Notes the broken parts of a reading, unless the same ones are known from the reading before."""
        parts = parsed.integrity.broken_parts
        if {part.path for part in parts} - set(known):
            named = "; ".join(f"{part.path} ({part.expected}), {part.count} times" for part in parts[:MOST_NAMED])
            more = f"; and {len(parts) - MOST_NAMED} more" if len(parts) > MOST_NAMED else ""
            schema = parsed.payload_schema
            self._note(f"{schema}: parts of the response could not be read and are left out: {named}{more}", reading)

    def _note(self, message: str, reading: Reading) -> None:
        if self._error is None:
            self._error = SchemaBreak(message, url=reading.ref.url)
            attach_evidence(self._error, AttemptEvidence(tuple(reading.documents.values())))

    @contextmanager
    def evidence_stored(self, *, now: datetime) -> Iterator[None]:
        """Writes the files before its body; nothing if the same was reported lately.

        Redacting large responses takes a second, for which no transaction may hold its locks.
        """
        if self._error is not None:
            report = self._report_of(self._error, now)
            if not error_log.was_reported(report, within=REPORTED_EVERY):
                name = report.match_key or self._source.key
                self._files = report, evidence.store(report, name=name, is_final=True)
        yield

    def report(self) -> None:
        """Writes the error with its evidence, in the caller's transaction."""
        if self._files is not None:
            report, files = self._files
            evidence.attach(files, error_log.record(report), report)

    def _report_of(self, error: SchemaBreak, now: datetime) -> ErrorReport:
        key = self._ref.key if self._ref else ""
        return ErrorReport(
            source_id=self._source.pk,
            error=error,
            operation=self._claim.resource.value,
            attempt=self._claim.attempt,
            now=now,
            task_id=self._claim.task_id,
            match_id=self._ref.match_id if self._ref else None,
            match_key=key,
            where=key,
            url=self._ref.url if self._ref else self._source.base_url,
        )
