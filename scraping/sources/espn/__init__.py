"""ESPN's open API: cricket by match (`espn`), football by day (`espnsoccer`)."""

from scraping.sources.espn.cricket import EspnAdapter
from scraping.sources.espn.soccer import EspnSoccerAdapter
