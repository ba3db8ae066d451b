"""The adapter of Sofascore's cricket: reads a match from the event, its innings and its balls."""

import re
from collections.abc import Sequence
from datetime import date
from itertools import chain

from scraping.payloads import (
    DiscoveredMatch,
    Event,
    Figures,
    Innings,
    LastEvent,
    MatchState,
    Payload,
    Phase,
    Sport,
    Status,
    Toss,
    score_of,
)
from scraping.sources import cricket, parsing
from scraping.sources.base import Endpoint, ListPlan, Reading, RefInfo, Request
from scraping.sources.broken_parts import is_broken
from scraping.sources.parsing import validated
from scraping.sources.sofascore import deliveries, listing, players, schemas, site
from scraping.sources.sofascore.adapter import SofascoreSite
from scraping.sources.sofascore.batting_order import decision_of, innings_of, side_of
from scraping.sources.sofascore.event import metadata_of, status_by_type, teams_of, title_of, venue_of, winner_of
from scraping.sources.sofascore.schemas import BriefStatus, CricketEvent, Delivery, InningsRow


class SofascoreCricketAdapter(SofascoreSite):
    """Sofascore cricket: the same site and responses as its football, with other contents."""

    key = "sofascorecricket"
    sport = Sport.CRICKET
    figure_schema = schemas.INNINGS
    address_example = ".../cricket/match/india-west-indies/kfAbspfAb#id:15884177, with the part after #"

    def endpoints(self, ref: RefInfo) -> tuple[Endpoint, ...]:
        innings = rf"/api/v1/event/{re.escape(ref.source_event_id)}/innings(?:\?|$)"
        return (*super().endpoints(ref), Endpoint("innings", re.compile(innings), is_required=False))

    def parse(self, reading: Reading) -> Payload:
        event, missing = site.event_in(reading, CricketEvent, self.sport)
        rows = _deliveries(reading, event)
        listed = _innings(reading, event)
        innings, knows_order = innings_of(event, listed, rows or [])
        balls = deliveries.balls_of(rows or [])
        events = deliveries.events_of(
            balls, deliveries.fallen_in(listed), cricket.balls_per_over(event.league, event.tour)
        )
        return self.payload(
            reading,
            state_of(event, innings, events),
            events=events,
            events_are_complete=rows is not None and not is_broken("incidents") and deliveries.are_all(balls, innings),
            has_events=rows is not None,
            also_missing=missing if knows_order else (*missing, "innings_order"),
            also_expected=1,
        )

    def parse_events(self, reading: Reading) -> tuple[Event, ...]:
        rows = site.required(reading, "incidents", list[Delivery], schemas.INCIDENTS)
        return deliveries.events_of(deliveries.balls_of(deliveries.balls_in(rows)))

    def fixture_plan(self, base_url: str, day: date) -> ListPlan:
        first = listing.tournaments_path(self.sport, day, 1)
        return listing.plan(base_url, self.sport, (listing.TOURNAMENTS, first))

    def more_fixtures(self, readings: Sequence[Reading], base_url: str, day: date) -> tuple[Request, ...]:
        return listing.tournament_requests(readings, base_url, day, self.sport)

    def parse_fixtures(self, reading: Reading, base_url: str, day: date) -> list[DiscoveredMatch]:
        return listing.tournament_matches(reading, base_url, self.sport)

    def figure_requests(self, ref: RefInfo, base_url: str) -> tuple[Request, ...]:
        return site.event_requests(ref, base_url, "innings")

    def parse_figures(self, reading: Reading) -> Figures:
        """Returns no figures where the source has no list of innings; the event names the teams of the sides."""
        envelope = self.envelope(reading, schemas.INNINGS)
        document = site.usable(reading.document("innings"))
        if document is None:
            return Figures(**envelope)
        listed = parsing.json_object(document).get("innings")
        rows = validated(list[InningsRow], listed, schema=schemas.INNINGS, url=document.url, path="innings")
        if not rows:
            return Figures(**envelope)
        event = site.event_in(reading, CricketEvent, self.sport)[0]
        per_over = cricket.balls_per_over(event.league, event.tour)
        figures = [players.innings_figures(row, side_of(event, row.battingTeam.id), per_over) for row in rows]
        return Figures(**envelope, figures=tuple(chain.from_iterable(figures)))


def _deliveries(reading: Reading, event: CricketEvent) -> list[Delivery] | None:
    """Returns the balls, or None where they are missing, invalid, or of other teams."""
    listed = site.optional(reading, "incidents", list[Delivery], schemas.INCIDENTS)
    if listed is None:
        return None
    rows = deliveries.balls_in(listed)
    if any(row.battingTeamId and side_of(event, row.battingTeamId) is None for row in rows):
        site.note_other_match("incidents")
        return None
    return rows


def _innings(reading: Reading, event: CricketEvent) -> list[InningsRow]:
    rows = site.optional(reading, "innings", list[InningsRow], schemas.INNINGS) or []
    if any(side_of(event, row.battingTeam.id) is None for row in rows):
        site.note_other_match("innings")
        return []
    return rows


def status_and_phase(status: BriefStatus, note: str = "") -> tuple[Status, Phase]:
    """Checks the note for a result first: it changes before the status does, except for a tie, which is not final."""
    judged, phase = status_by_type(status)
    is_ended = judged is Status.COMPLETED or (
        judged is Status.LIVE and bool(cricket.result_in(note, is_tie_final=False))
    )
    if is_ended:
        return (Status.ABANDONED if cricket.is_called_off(note) else Status.COMPLETED), Phase.FINISHED
    if judged is not Status.LIVE:
        return judged, phase
    if status.type == "willcontinue":
        return judged, Phase.STUMPS
    said = (cricket.phase_in(status.description), cricket.phase_in(note))
    # "Interrupted" says less than the note
    return judged, next((one for one in said if one not in (None, Phase.INTERRUPTED)), None) or phase


def state_of(event: CricketEvent, innings: Sequence[Innings], events: Sequence[Event]) -> MatchState:
    note = parsing.text(event.note)
    status, phase = status_and_phase(event.status, note)
    teams = teams_of(event)
    last = next((event for event in events if event.kind != "dismissal"), None)
    # the balls may be a second ahead of the score
    current = max(len(innings), (last.innings or 0) if last else 0) or None
    winner = (event.tossWin or "").strip()
    result = ""
    if status is Status.ABANDONED:
        result = note or event.status.description[:60] or "Abandoned"
    elif status is Status.COMPLETED:
        won = winner_of(event, teams)
        result = note or (f"{won} won" if won else "")
    return MatchState(
        sport=Sport.CRICKET,
        title=title_of(event),
        status=status,
        phase=phase,
        teams=teams,
        score=score_of(innings),
        innings=tuple(innings),
        current_innings=None if status is Status.UPCOMING else current,
        toss=Toss(winner=winner[:120], decision=decision_of(event)) if winner else None,
        venue=venue_of(event),
        start_time=parsing.moment(event.startTimestamp),
        last_event=LastEvent(type=last.kind, description=last.description) if last else None,
        result=result,
        metadata=metadata_of(event, Sport.CRICKET),
    )
