"""One match state out of the states of several sources.

Pure functions over plain JSON values: `choosing` picks the source of each field, `stuck` finds a source that has not
noticed the start or the end of a match, `disagreement` finds conflicts that no delay explains, `states` compares and
orients states.
"""

from scraping.matches.reconcile.choosing import reconcile
from scraping.matches.reconcile.disagreement import as_text
from scraping.matches.reconcile.states import (
    SIDES,
    FieldConflict,
    Reconciled,
    SourceView,
    State,
    delta,
    fill_gaps,
    goes_backwards,
    has_play_changed,
    is_crossed,
    is_empty,
    only_source,
    oriented,
    progress_summary,
    shows_other_teams,
    swap_detail_sides,
    swap_sides,
    swap_slot_sides,
    team_name,
)
from scraping.matches.reconcile.stuck import STUCK_SECONDS

__all__ = [
    "SIDES",
    "STUCK_SECONDS",
    "FieldConflict",
    "Reconciled",
    "SourceView",
    "State",
    "as_text",
    "delta",
    "fill_gaps",
    "goes_backwards",
    "has_play_changed",
    "is_crossed",
    "is_empty",
    "only_source",
    "oriented",
    "progress_summary",
    "reconcile",
    "shows_other_teams",
    "swap_detail_sides",
    "swap_sides",
    "swap_slot_sides",
    "team_name",
]
