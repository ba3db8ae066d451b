"""The bodies around POST /cricket-data, as the API's description shows them."""

from __future__ import annotations

from uuid import UUID

from pydantic import AwareDatetime, Field, RootModel

from scraping.api.documents import Document
from scraping.jobs.submission_schema import SentMatch, SentMatches
from scraping.models import SubmissionState


class SubmissionRequest(RootModel[SentMatch | SentMatches]):
    """One match, or several under `matches`."""


class SubmittedEvents(Document):
    added: int
    updated: int
    retracted: int


class SubmissionDocument(Document):
    """What became of one match that you sent."""

    submission_id: UUID
    state: SubmissionState = Field(
        description="accepted: it is written down and waits for a worker. done: it is in the match. refused: it can't "
        "be taken, `reason` says why."
    )
    reason: str = Field(description="Why it was refused, or what of it was not taken; usually empty.")
    match_id: str = Field(description="Your own id of the match.")
    match: int = Field(description="Ours: GET /api/v1/matches/{match} reads it.")
    key: str = Field(description="Your match's name among all keys of the match; works as an id everywhere.")
    received_at: AwareDatetime
    finished_at: AwareDatetime | None
    sequence: int | None = Field(description="The match's sequence after it; null while it waits.")
    is_changed: bool | None = Field(description="Did anything that we serve change by it?")
    is_taken: bool | None = Field(description="false: its state was not taken, `reason` says why.")
    events: SubmittedEvents | None
    href: str = Field(description="Where to ask what became of it.")


class SubmissionList(Document):
    """In the order of the matches that were sent."""

    submissions: list[SubmissionDocument]


class SubmissionAnswer(RootModel[SubmissionDocument | SubmissionList]):
    """Of one match its submission, of several a list."""
