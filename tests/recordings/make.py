"""Makes the recordings of this folder again: `python -m tests.recordings.make`. A change of a shape is made here.

The documents are those of the stadium and of the builders of tests, shortened, and anonymised as `read --save` does.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "victoryline.settings")
os.environ.setdefault("LOG_LEVEL", "WARNING")
import django

django.setup()

from scraping.reading.recordings import save  # noqa: E402 - needs the settings
from scraping.reading.saved import Saved, Trials  # noqa: E402
from scraping.readings import FIELDS, PAGE, Document, RefInfo, Request, Site  # noqa: E402
from scraping.sources import adapter_for, parsing  # noqa: E402
from scraping.sources.crex.site import page_state  # noqa: E402
from scraping.sources.extract import from_html  # noqa: E402
from tests.scraping.sources import builders as build  # noqa: E402
from tests.scraping.sources import espn_builders as espn  # noqa: E402
from tests.scraping.sources import espncricinfo_pages as cricinfo  # noqa: E402
from tests.scraping.sources.test_stadium import NONCES, Visitor, stadium  # noqa: E402

NONCES.setdefault("sofascorecricket", ("sf-n", "sfcclr"))
FOLDER = Path(__file__).parent
MOMENT = 5_000.0  # simulated seconds: the second innings, the second half
ROWS, LINEUP_ROWS = 5, 3
LINES = 12  # of a list of players


def trimmed(value: Any, rows: int = ROWS) -> Any:
    """Returns the same with the first rows of each list."""
    if isinstance(value, dict):
        return {name: trimmed(one, rows) for name, one in value.items()}
    return [trimmed(one, rows) for one in value[:rows]] if isinstance(value, list) else value


def shortened(document: Document, rows: int = ROWS) -> Document:
    """Returns a document with short lists; of a page only the data of its scripts."""
    text = document.text()
    if (state := page_state(text)) is not None:
        names = {url: one for url, one in state.items() if "getHomeMapData" in url}
        return build.document(document.name, build.page_html(trimmed(state, rows) | names), url=document.url)
    if (data := parsing.next_data(text)) is not None:
        page = f'<script id="__NEXT_DATA__" type="application/json">{json.dumps(trimmed(data, rows))}</script>'
        return build.document(document.name, page, url=document.url)
    if text.lstrip().startswith("<"):
        return document
    return build.document(document.name, trimmed(document.json(), rows), url=document.url)


def rated(lineups: Document) -> Document:
    data = lineups.json()
    for side in ("home", "away"):
        for place, player in enumerate(data[side]["players"]):
            player["statistics"] = {"rating": 6.5 + place / 10, "minutesPlayed": 90, "goals": place % 2}
    return build.document(lineups.name, data, url=lineups.url)


def record(case: str, kind: str, base_url: str, *documents: Document, match_id: str = "", at: float = 0.0) -> None:
    """Writes one recording, with the site's key as the first part of `case`."""
    adapter = adapter_for(case.partition("/")[0])
    files = [Saved(one.name, one, one.name) for one in documents]
    moment = datetime.fromtimestamp(at, UTC) if at else build.DURING
    site = Site(adapter.key, base_url)
    trials = Trials(adapter, site, files, at=moment, day=moment.date(), kind=kind, match_id=match_id).best()
    assert trials[0].error is None, (case, trials[0].error)
    assert trials[0].is_found, (case, trials[0])
    shutil.rmtree(FOLDER / case, ignore_errors=True)
    save(FOLDER / case, trials, adapter, base_url, seed=1)
    print(case, len(documents), "documents", trials[0].missing, trials[0].unknown)  # noqa: T201


async def of_stadium(key: str, programme: str, visitor: Visitor) -> None:
    """Records what the stadium serves at a moment in mid-match."""
    adapter, base = adapter_for(key), f"{visitor.base}/{key}"
    visitor.move_to(MOMENT)
    rows = [one for one in await visitor.json("/truth/matches") if one["site"] == key]
    row = next((one for one in rows if one["status"] == "live"), rows[0])
    ref, at = RefInfo(row["key"], row["url"]), visitor.clock[0]
    day = datetime.fromtimestamp(at, UTC).date()

    async def asked(requests: Sequence[Request], rows: int = ROWS) -> list[Document]:
        return [shortened(await visitor.post(one), rows) for one in requests]

    known = {"match_id": ref.source_event_id, "at": at}
    page = Request(PAGE, ref.url.partition("#")[0])
    if key in ("crex", "sofascore", "sofascorecricket"):
        await visitor.open(key, page.url)
    api = f"{base}/api/v1/event/{ref.source_event_id}"
    own: dict[str, list[Request]] = {
        "crex": [
            page,
            Request("live", f"{base}/api/v3/getSV3?key={ref.source_event_id}"),
            Request("feed", f"{base}/commentary/v2/getBallFeeds", "POST",
                    json.dumps({"matchKey": ref.source_event_id, "lastDocId": "", "filters": []}).encode()),
        ],
        "sofascore": [Request("event", api), Request("incidents", f"{api}/incidents")],
        "sofascorecricket": [Request(name, f"{api}/{name}".removesuffix("/event")) for name in
                             ("event", "incidents", "innings")],
        "board": [page],
    }  # fmt: skip
    documents = await asked(own.get(key) or adapter.requests(ref, base))
    record(f"{key}/match", "match", base, *documents, **known)
    if adapter.layout is not None:
        fields = build.document(FIELDS, from_html(documents[0].text(), adapter.layout))
        record(f"{key}/attached", "match", base, fields, **known)
    if adapter.lineup_schema:
        documents = await asked(adapter.lineup_requests(ref, base), LINEUP_ROWS)
        record(f"{key}/lineups", "lineups", base, *documents, **known)
    if adapter.figure_schema:
        documents = await asked(adapter.figure_requests(ref, base), 4)
        if key == "sofascore":  # ratings come after the end
            documents[0] = rated(documents[0])
        record(f"{key}/figures", "figures", base, *documents, **known)
    lists = {
        "crex": [Request("list", f"{base}/api/v3/getLiveMatches"), Request(PAGE, f"{base}/cricket-live-score")],
        "sofascore": [Request("live_list", f"{base}/api/v1/sport/football/events/live")],
        "sofascorecricket": [Request("live_list", f"{base}/api/v1/sport/cricket/events/live")],
    }
    plan = adapter.list_plan(base)
    wanted = lists.get(key) or plan.requests or [Request(PAGE, plan.url)]
    record(f"{key}/list", "list", base, *await asked(wanted, 3), at=at)
    if key == "crex":
        fixtures = adapter.fixture_plan(base, day)
        assert fixtures is not None
        page_of_names, _, present, _ = await asked(fixtures.requests, 3)
        record("crex/fixtures", "fixtures", base, page_of_names, present, at=at)


def of_builders() -> None:
    """Records further shapes of the real sites (docs/sources), which the stadium does not serve."""
    rendered = build.page_html(None, build.HEADER.format(said="PEL need 64 runs"))
    record(
        "crex/rendered", "match", build.CREX_BASE, build.document(PAGE, rendered, url=build.CREX.url), match_id="9XA"
    )
    record("crex/state", "match", build.CREX_BASE, build.page(), match_id="9XA")
    data = {"props": {"pageProps": {"event": build.event()}}}
    page = build.document(PAGE, f'<script id="__NEXT_DATA__" type="application/json">{json.dumps(data)}</script>')
    record("sofascore/page", "match", build.SOFA_BASE, page, match_id="7001")
    listed = build.document("round", {"events": [build.event(), build.event(id=7002)]})
    record("sofascore/round", "round", build.SOFA_BASE, listed)
    summary = {
        "header": espn.soccer_event() | {"league": {"name": "Copse League", "slug": "bra.1"}},
        "keyEvents": [
            espn.key_event("Goal", "14'", "Bo Finch", scoringPlay=True),
            espn.key_event("Yellow Card", "20'", "Al Reed"),
            espn.key_event("Substitution", "46'", "Cy Moss|Ada Vale"),
        ],
    }
    document = build.document("board", summary)
    record("espnsoccer/summary", "match", espn.SOCCER_BASE, document, match_id=espn.SOCCER.source_event_id)
    shown = build.document(PAGE, f"<html><body><pre>{json.dumps(espn.summary())}</pre></body></html>")
    record("espn/page", "match", espn.BASE, shown, match_id=espn.CRICKET.source_event_id)
    wicket = cricinfo.content(
        cricinfo.comment(cricinfo.ball(3, 4)), cricinfo.wicket(), cricinfo.comment(cricinfo.ball(1))
    )
    page = build.document(
        PAGE, cricinfo.html({"data": {"match": cricinfo.match(), "content": wicket}}), url=cricinfo.URL
    )
    record("espncricinfo/live", "match", "http://site.test/espncricinfo", page, match_id="800200")

    card = [
        {"c": "OR", "d": "151/10(116", "b": ["P1.40.31.4.1.2.B1./22-129.03", "P2.0.0.0.0"], "a": ["B1.30.24.1.3"]},
        {"c": "PE", "d": "88/2(63", "b": ["B1.50.30.5.2"], "a": ["P1.12.7.0.0"]},
    ]
    names = build.document("mapping", build.state()["https://names.test/mapping/getHomeMapDataliveparsing"])
    live = build.document("live", build.live(h="2", fo="TEST", inning=3))
    documents = live, names, build.document("scorecard", card), build.document("feed", build.feed()), build.page()
    record("crex/long", "match", build.CREX_BASE, *documents, match_id="9XA")
    comments = [cricinfo.comment(cricinfo.ball(number)) for number in (3, 2, 1)]
    content = {"innings": cricinfo.content()["innings"], "comments": comments}
    page = build.document(PAGE, cricinfo.html({"match": cricinfo.match(), "content": content}), url=cricinfo.URL)
    record("espncricinfo/commentary", "match", "http://site.test/espncricinfo", page, match_id="800200")


async def main() -> None:
    for key in ("crex", "espncricinfo", "espn", "sofascorecricket"):
        async with stadium("many:1") as visitor:
            await of_stadium(key, "many:1", visitor)
    for key, programme in (("sofascore", "demo"), ("espnsoccer", "demo"), ("board", "board:1")):
        async with stadium(programme) as visitor:
            await of_stadium(key, programme, visitor)
    of_builders()


if __name__ == "__main__":
    asyncio.run(main())
