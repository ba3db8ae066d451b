"""The scoreboard adapter: values by selectors, from a page that stays open or from one that was just loaded.

The selectors are best first. A source's own selectors (admin, sources.yaml) precede them.
"""

import re
from collections.abc import Sequence
from urllib.parse import urlsplit, urlunsplit

from pydantic import ValidationError

from scraping.errors import LayoutChanged, SchemaBreak
from scraping.payloads import (
    DiscoveredMatch,
    Event,
    Innings,
    MatchState,
    Payload,
    Phase,
    Sport,
    Status,
    Team,
    Teams,
    score_of,
)
from scraping.readings import FIELDS
from scraping.sources import broken_parts, cricket, extract, parsing
from scraping.sources.base import Adapter, ListPlan, Reading, RefInfo, Request
from scraping.sources.extract import Extracted
from scraping.sources.layout import Field, Layout, Rows

STATES = {
    "upcoming": Status.UPCOMING,
    "live": Status.LIVE,
    "result": Status.COMPLETED,
    "abandoned": Status.ABANDONED,
}
_TOTAL = re.compile(r"(\d{1,4})/(\d{1,2})\s*\((\d{1,3})\.(\d{1,2})\s*ov\)", re.ASCII)
_CARDS = {"OUT": "dismissal", "END": "over_complete"}
_ADDRESS = re.compile(r"/match/[^/?#]*-([0-9A-Za-z]{1,8})/?$", re.ASCII)


def _field(name: str, part: str, *more: str, is_required: bool = False) -> Field:
    """Returns selectors by the present class and by the older attribute names, which may return."""
    return Field(name, (f".sb-{part}", f"[data-part='{part}']", *more), is_required=is_required)


def _time(name: str, part: str) -> Field:
    return Field(name, (f".sb-{part}::attr(datetime)", f"//*[@data-part='{part}']/@datetime"))


MATCH = Layout(
    fields=(
        _field("key", "key", is_required=True),
        _field("name_a", "name-a", "//*[@data-part='side-a']//b", is_required=True),
        _field("name_b", "name-b", "//*[@data-part='side-b']//b", is_required=True),
        _field("short_a", "short-a", "//*[@data-part='side-a']//i"),
        _field("short_b", "short-b", "//*[@data-part='side-b']//i"),
        _field("total_a", "total-a", "//*[@data-part='side-a']//span", is_required=True),
        _field("total_b", "total-b", "//*[@data-part='side-b']//span", is_required=True),
        _field("state", "state", is_required=True),
        _field("note", "note"),
        _field("toss", "toss"),
        _field("outcome", "outcome"),
        _field("series", "series"),
        _field("format", "format"),
        _field("venue", "venue"),
        _field("title", "fixture", "h1"),
        _field("batters", "batter"),
        _field("bowler", "bowler"),
        _time("start", "start"),
        _time("as_of", "as-of"),
        Field(
            "older",
            (".sb-older::attr(href)", "[data-part='older']::attr(href)", "//a[contains(@href, 'before=')]/@href"),
        ),
    ),
    rows=(
        Rows(
            "balls",
            (".sb-ball", "[data-part='ball']"),
            (
                Field("id", ("./@data-id", "./@data-ball")),
                Field("number", ("./@data-n", "./@data-no")),
                _field("innings", "innings"),
                _field("over", "over"),
                _field("code", "code"),
                _field("said", "said"),
            ),
        ),
    ),
    pulse="as_of",
)

LIST = Layout(
    fields=(_field("list", "list", "//div[.//a[contains(@href, '/match/')]]", is_required=True),),
    rows=(
        Rows(
            "cards",
            (".sb-card", "[data-part='card']", "//div[a[contains(@href, '/match/')]]"),
            (
                Field("link", (".sb-link::attr(href)", "./a/@href")),
                Field("title", (".sb-link", "a")),
                _field("state", "state", "em"),
            ),
        ),
    ),
)


class ScoreboardAdapter(Adapter):
    """A scoreboard without JSON. The page receives updates and redraws itself."""

    key = "board"
    sport = Sport.CRICKET
    payload_schema = "board.match.v1"
    address_example = ".../match/ahb-v-cld-odi-138Z"
    layout: Layout | None = MATCH
    list_layout: Layout | None = LIST
    prefers_attached = True

    def parse(self, reading: Reading) -> Payload:
        found = _extracted(reading, MATCH)
        parsing.refuse_another("the page is", found.text("key", 20), reading.ref.source_event_id, reading.ref.url)
        events = events_of(found)
        payload = self.payload(reading, state_of(found, events), has_events=bool(events), events=events)
        integrity = payload.integrity.model_copy(update={"fallback_selectors": found.fallbacks()})
        return payload.model_copy(update={"integrity": integrity})

    def older_events(self, reading: Reading, request: Request) -> Request | None:
        link = _extracted(reading, MATCH).text("older", 300)
        url = parsing.joined(request.url, link)
        return Request("page", url) if link and url and url != request.url else None

    def list_plan(self, base_url: str) -> ListPlan:
        return ListPlan(url=f"{base_url.rstrip('/')}/", endpoints=())

    def parse_list(self, reading: Reading, base_url: str) -> list[DiscoveredMatch]:
        """Raises LayoutChanged where the list has rows that are no matches; an empty list is valid."""
        page_url = reading.ref.url or base_url
        found = _extracted(reading, LIST)

        def match_of(row: dict[str, str]) -> DiscoveredMatch | None:
            match = self.match_at(parsing.joined(page_url, row.get("link", "")), base_url)
            if match is None:
                parsing.note_unrecognized(parsing.LIST_ROW, f"links to no match: {row.get('link')}")
            printed = row.get("state", "")
            if printed and printed.lower() not in STATES:
                parsing.note_unrecognized("cards[].state", printed)
            status = STATES.get(printed.lower(), Status.UPCOMING)
            return match and match.model_copy(update={"title": parsing.text(row.get("title")), "status": status})

        matches = parsing.unique_matches(found.rows("cards"), match_of)
        if not matches and found.text("list"):
            tried = ", ".join(found.layout.named()["cards"])
            raise LayoutChanged(f"not on the page: cards (tried {tried})", url=page_url, selector=tried)
        return matches

    def ref_at(self, url: str, base_url: str) -> RefInfo | None:
        parts = urlsplit(url)
        key = _ADDRESS.search(parts.path.removeprefix(urlsplit(base_url.rstrip("/")).path))
        if key is None:
            return None
        page = urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))
        return RefInfo(key.group(1), page)


def _extracted(reading: Reading, standard: Layout) -> Extracted:
    """Returns the values of an open page, else of a page's text; raises LayoutChanged for another page."""
    layout = standard.using(reading.selectors)
    answered, page = reading.document(FIELDS), reading.document("page")
    html = page.text() if page is not None else ""
    found = parsing.mapping(answered.json()) if answered is not None else extract.from_html(html, layout)
    extracted = Extracted(found, layout)
    try:
        extracted.demand(url=reading.ref.url, html=html)
    except LayoutChanged:
        parsing.raise_if_challenge(html, reading.ref.url)
        raise
    return extracted


def state_of(found: Extracted, events: Sequence[Event]) -> MatchState:
    team_a, team_b = (
        Team(name=found.text(f"name_{side}", 120), short_name=found.text(f"short_{side}", 24)) for side in "ab"
    )
    printed = found.text("state", 40)
    status = STATES.get(printed.lower())
    if status is None:
        raise SchemaBreak(f"the board's state is {printed!r}; known are: {', '.join(STATES)}")
    phase = Phase.SCHEDULED if status is Status.UPCOMING else Phase.FINISHED
    if status is Status.UPCOMING and cricket.POSTPONED.search(found.text("note")):
        phase = Phase.POSTPONED
    innings = _innings(found) if status is not Status.UPCOMING else ()
    metadata = {"series": found.text("series", 200), "match_type": found.text("format", 40)}
    if status is Status.LIVE:
        phase = cricket.phase_in(found.text("note")) or Phase.PLAY
        metadata |= {"batters": "; ".join(found.texts("batters")[:2])[:200], "bowler": found.text("bowler", 120)}
    return MatchState(
        sport=Sport.CRICKET,
        title=found.text("title") or f"{team_a.name} v {team_b.name}",
        status=status,
        phase=phase,
        teams=Teams(team_a=team_a, team_b=team_b),
        score=score_of(innings),
        innings=innings,
        current_innings=len(innings) or None,
        toss=cricket.toss_in(found.text("toss"), (team_a, team_b)),
        venue=found.text("venue"),
        start_time=parsing.iso_moment(found.text("start", 40)),
        last_event=events[0].as_last_event() if events else None,
        result=found.text("outcome"),
        metadata={name: value for name, value in metadata.items() if value},
    )


def events_of(found: Extracted) -> tuple[Event, ...]:
    """Returns the events, newest first, each id once; a ball that cannot be read costs itself and is noted."""
    try:
        rows = found.rows("balls")
    except SchemaBreak as error:
        broken_parts.note("balls", str(error))
        return ()
    events: dict[str, Event] = {}
    for row in rows:
        try:
            events[row.get("id", "")] = _event_of(row)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            broken_parts.note(f"balls[].{broken_parts.path_of(first['loc'])}", first["msg"])
    return tuple(events.values())


def _event_of(row: dict[str, str]) -> Event:
    code, number = row.get("code", ""), parsing.integer(row.get("number"))
    kind, runs = (_CARDS[code], None) if code in _CARDS else cricket.read_code(code, adds_no_ball=True)[:2]
    return Event(
        id=row.get("id", "")[:120],
        kind=kind,
        innings=parsing.integer(row.get("innings")),
        over=row.get("over", "")[:10] or None,
        ordinal=number if number is not None and number >= 1 else None,
        runs=runs,
        is_critical=kind not in ("over_complete", "other"),
        description=row.get("said", ""),
        happened_at=parsing.moment(row.get("id"), per_second=1000),
        detail={"ball": code} if code not in _CARDS else {},
    )


def _innings(found: Extracted) -> tuple[Innings, ...]:
    innings: list[Innings] = []
    for side, name in (("team_a", "total_a"), ("team_b", "total_b")):
        text = found.text(name)
        if not text:
            continue
        total = _TOTAL.fullmatch(text)
        if total is None:
            raise SchemaBreak(f"the total of {side} is {text[:40]!r}, not like 123/4 (14.2 ov)")
        runs, wickets, overs, balls = (int(part) for part in total.groups())
        fields = {"number": len(innings) + 1, "team": side, "runs": runs, "wickets": wickets}
        innings.append(Innings.model_validate({**fields, "overs": f"{overs}.{balls}"}))
    return tuple(innings)
