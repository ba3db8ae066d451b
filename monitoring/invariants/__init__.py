"""What must hold at every moment, whatever died a moment ago: questions to the database, each with its answer.

Guards against damage that nobody notices: a task that nobody will ever run, data without the task that brought it, a
source charged for our own faults. Read-only, one consistent view, cheap enough for a system at work.
"""

from monitoring.invariants.data import RULES as DATA
from monitoring.invariants.remains import RULES as REMAINS
from monitoring.invariants.rules import BOUND_SECONDS, Moment, Rule, Verdict, judge
from monitoring.invariants.view import consistent_view
from monitoring.invariants.work import RULES as WORK

RULES: tuple[Rule, ...] = (*DATA, *WORK, *REMAINS)

__all__ = ["BOUND_SECONDS", "RULES", "Moment", "Rule", "Verdict", "consistent_view", "judge"]
