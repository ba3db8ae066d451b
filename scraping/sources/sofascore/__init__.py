"""Sofascore: football and cricket. One response has the whole match, another all its events."""

from scraping.sources.sofascore.adapter import SofascoreAdapter
from scraping.sources.sofascore.cricket_adapter import SofascoreCricketAdapter
