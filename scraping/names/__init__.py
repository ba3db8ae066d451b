"""Compares team names: one team under two names, and two teams under almost the same name. Pure.

`words` normalizes single words: scripts, spellings, cities, club types, sponsors. `comparison` compares whole names.
"""

from scraping.names.comparison import (
    BY_ABBREVIATION,
    BY_INITIALS,
    BY_SHORT_NAME,
    BY_SPELLING,
    BY_WORDS,
    EXACT,
    NO_ALIASES,
    Aliases,
    TeamName,
    alias_table,
    grade_in,
    identity,
    share_a_word,
    similarity,
    squeezed,
    team,
    with_grade,
)
from scraping.names.words import plain
