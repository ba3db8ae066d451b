"""Rows of a list that could not be read: counted as unknown values, and reported with the list as evidence.

Guards against matches that go missing unnoticed: such a row fails no task, because the other matches must be found.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from scraping.errors import SchemaBreak
from scraping.journal import Claim, error_log, evidence
from scraping.journal.error_log import ErrorReport
from scraping.models import Evidence, Source
from scraping.payloads import Parsed
from scraping.readings import AttemptEvidence, Reading, attach_evidence, evidence_from
from scraping.sources import parsing
from scraping.worker.engine import Engine

REPORTED_EVERY = timedelta(hours=1)  # a list is read every minute, and mostly has the same rows


class ListNotes:
    """Collects the rows that the lists of one task have left out."""

    def __init__(self, claim: Claim, source: Source, engine: Engine) -> None:
        self._claim, self._source, self._engine = claim, source, engine
        self._error: SchemaBreak | None = None
        self._files: tuple[ErrorReport, list[Evidence]] | None = None

    @contextmanager
    def of(self, reading: Reading) -> Iterator[None]:
        """Notes the rows that parsing in the body leaves out. An error that it raises gets the evidence."""
        with evidence_from(reading), parsing.noting_unrecognized() as unknown:
            yield
        parsed = Parsed(
            source=self._source.key,
            payload_schema=f"{self._source.adapter_key}.list",
            captured_at=reading.captured_at,
            source_event_id="",
            unknown=tuple(unknown),
        )
        self._engine.read_stats.unknown(self._source.key, parsed)
        rows = [one.value for one in unknown if one.path == parsing.LIST_ROW]
        if rows and self._error is None:
            count = f"at least {len(rows)}" if len(unknown) == parsing.MAX_UNRECOGNIZED else str(len(rows))
            self._error = SchemaBreak(
                f"rows of a list could not be read and are left out: {count}, the first one: {rows[0]}",
                url=reading.ref.url,
            )
            attach_evidence(self._error, AttemptEvidence(tuple(reading.documents.values())))

    def store_evidence(self, *, now: datetime) -> None:
        """Writes the files of the first list with such rows; nothing where the same was reported lately."""
        if self._error is None:
            return
        report = ErrorReport(
            source_id=self._source.pk,
            error=self._error,
            operation=self._claim.resource.value,
            attempt=self._claim.attempt,
            now=now,
            task_id=self._claim.task_id,
            url=self._source.base_url,
        )
        if not error_log.was_reported(report, within=REPORTED_EVERY):
            self._files = report, evidence.store(report, name=self._source.key, is_final=True)

    def report(self) -> None:
        """Writes the error with its evidence, in the transaction that finishes the task."""
        if self._files is not None:
            report, files = self._files
            evidence.attach(files, error_log.record(report), report)
