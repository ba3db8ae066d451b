"""One truth out of what the sources say, and the difference between two truths.

Pure functions over plain JSON values: `choosing` picks each field's source, `stuck` finds one that a match has
left behind, `disagreement` finds what no delay
explains, `sides` turns a state whose teams are the other way round, `progress` compares two states of one match.
"""

from scraping.matches.reconcile.choosing import reconcile, tells_other_play
from scraping.matches.reconcile.disagreement import in_words
from scraping.matches.reconcile.progress import delta, goes_backwards, standing
from scraping.matches.reconcile.sides import (
    exchanged_detail,
    exchanged_slot,
    fill_gaps,
    orient,
    shows_other_teams,
    with_sides_exchanged,
)
from scraping.matches.reconcile.stuck import STUCK_SECONDS
from scraping.matches.reconcile.views import FieldConflict, Reconciled, SourceView, State, is_empty

__all__ = [
    "STUCK_SECONDS",
    "FieldConflict",
    "Reconciled",
    "SourceView",
    "State",
    "delta",
    "exchanged_detail",
    "exchanged_slot",
    "fill_gaps",
    "goes_backwards",
    "in_words",
    "is_empty",
    "orient",
    "reconcile",
    "shows_other_teams",
    "standing",
    "tells_other_play",
    "with_sides_exchanged",
]
