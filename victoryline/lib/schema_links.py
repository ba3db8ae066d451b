"""Which answer leads to which request, in the API's description: how a newcomer, or a machine, finds the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Link:
    """From the answer of one operation to the parameters of another, which are OpenAPI's runtime expressions."""

    of: str
    status: str
    to: str
    words: str
    parameters: tuple[tuple[str, str], ...]

    def described(self) -> dict[str, Any]:
        return {"operationId": self.to, "parameters": dict(self.parameters), "description": self.words}


def _link(of: str, status: str, to: str, words: str, **parameters: str) -> Link:
    return Link(of, status, to, words, tuple(parameters.items()))


ID = "$response.body#/id"
SAME = "$request.path.match_id"
OF_A_MATCH = ("list_events", "list_lineups", "list_conflicts", "list_snapshots")
LINKS = (
    _link("list_matches", "200", "read_match", "All of a match in the list.", match_id="$response.body#/matches/0/id"),
    *(_link("read_match", "200", to, "What belongs to the match.", match_id=ID) for to in OF_A_MATCH),
    _link(
        "read_match", "200", "read_delta", "What changes from now on.", match_id=ID, since="$response.body#/sequence"
    ),
    _link("read_match", "200", "watch_match", "To have it read.", match_id=ID),
    _link("list_events", "200", "list_events", "What comes after.", match_id=SAME, since="$response.body#/next_since"),
    _link(
        *("list_snapshots", "200", "read_snapshot", "One of them."),
        match_id=SAME,
        sequence="$response.body#/snapshots/0/sequence",
    ),
    _link("list_live_matches", "200", "read_match_info", "One of them.", match_id="$response.body#/matches/0/matchId"),
    _link("watch_match", "200", "stop_match", "The end of the watch.", match_id=ID),
    _link("pause_match", "200", "resume_match", "The end of the pause.", match_id=ID),
    _link("start_job", "202", "read_job", "How far it is.", job_id=ID),
    _link("start_job", "200", "read_job", "How far it is.", job_id=ID),
    _link("list_jobs", "200", "read_job", "One of them.", job_id="$response.body#/jobs/0/id"),
    _link(
        *("submit_match", "202", "read_submission", "What became of it."),
        submission_id="$response.body#/submission_id",
    ),
)


def add_links(operations: dict[str, dict[str, Any]]) -> None:
    """`operations` by their ids. A link to an operation that isn't there is left out; a test says so."""
    for link in LINKS:
        answer = operations.get(link.of, {}).get("responses", {}).get(link.status)
        if answer is not None and link.to in operations:
            answer.setdefault("links", {})[_name(link)] = link.described()


def _name(link: Link) -> str:
    return f"{link.to}_after_{link.of}" if link.to != link.of else f"next_of_{link.of}"
