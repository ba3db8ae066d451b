"""Finds matches of two sources that are the same match, and merges them.

`candidates` loads the matches to compare, `scoring` compares two of them, `finding` decides and writes reviews for
people, `merging` makes one match of two. Matches that a person has called different are never merged.
"""

from scraping.matches.pairing.finding import (
    Finder,
    Place,
    keep_apart,
    merge_reviewed,
    sweep,
)
from scraping.matches.pairing.merging import MergeRefused, merge
