"""Two matches become one, because a person said so or because nothing spoke against it.

`candidates` knows what there is to compare, `finding` decides (with `pairing`) and writes reviews, `merging` joins.
Sole writer of reviews. Nothing is joined that a person has called two matches.
"""

from scraping.matches.pairing.aliases import aliases_of
from scraping.matches.pairing.finding import Finder, Found, find, finder, sweep, sweep_quietly, write_reviews
from scraping.matches.pairing.merging import NotJoined, join
from scraping.matches.pairing.reviewing import keep_apart, unite

__all__ = [
    "Finder",
    "Found",
    "NotJoined",
    "aliases_of",
    "find",
    "finder",
    "join",
    "keep_apart",
    "sweep",
    "sweep_quietly",
    "unite",
    "write_reviews",
]
