"""The selectors of a scoreboard page, best first. A source's own selectors (admin, sources.yaml) precede them."""

from __future__ import annotations

from scraping.sources.layout import Field, Layout, Rows


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
