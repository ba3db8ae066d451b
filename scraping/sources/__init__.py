"""The registry of adapters: one folder per site, one row here."""

from scraping.sources.base import Adapter
from scraping.sources.crex.adapter import CrexAdapter
from scraping.sources.espn.cricket import EspnAdapter
from scraping.sources.espn.soccer import EspnSoccerAdapter
from scraping.sources.espncricinfo.adapter import EspncricinfoAdapter
from scraping.sources.layout import selector_problem
from scraping.sources.scoreboard.adapter import ScoreboardAdapter
from scraping.sources.sofascore.adapter import SofascoreAdapter
from scraping.sources.sofascore.cricket_adapter import SofascoreCricketAdapter

ADAPTERS: dict[str, Adapter] = {
    adapter.key: adapter
    for adapter in (
        CrexAdapter(),
        SofascoreAdapter(),
        SofascoreCricketAdapter(),
        ScoreboardAdapter(),
        EspnAdapter(),
        EspnSoccerAdapter(),
        EspncricinfoAdapter(),
    )
}


def reading_problem(adapter: Adapter, read_way: str, selectors: object) -> str:
    """Returns why a source with this adapter cannot be read as configured; empty if it can."""
    layouts = [layout for layout in (adapter.layout, adapter.list_layout) if layout is not None]
    if read_way == "attached" and adapter.layout is None:
        return f"{adapter.key} is not read by selectors, so its pages cannot stay open to be asked (read_way)"
    if read_way in ("direct", "in_page") and adapter.prefers_attached:
        return f"{adapter.key} has no endpoints that could be requested (read_way)"
    problem = selector_problem(selectors, layouts)
    return f"selectors: {problem}" if problem else ""


def adapter_for(key: str) -> Adapter:
    try:
        return ADAPTERS[key]
    except KeyError:
        raise KeyError(f"no adapter named {key!r}; there are: {', '.join(sorted(ADAPTERS))}") from None
