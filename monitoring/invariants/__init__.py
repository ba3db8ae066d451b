"""Invariants of the database, each a rule that lists the rows which break it.

Guards against damage that raises no error: a task that will never run, data without the task that wrote it, a source
charged for our own faults. Read-only, from one consistent view, cheap enough for a running system.
"""

from monitoring.invariants.data import RULES as DATA
from monitoring.invariants.journal import RULES as JOURNAL
from monitoring.invariants.leftovers import RULES as LEFTOVERS
from monitoring.invariants.rules import BOUND_SECONDS, CheckContext, Rule, RuleResult, check_rules, consistent_view

RULES: tuple[Rule, ...] = (*DATA, *JOURNAL, *LEFTOVERS)

__all__ = ["BOUND_SECONDS", "RULES", "CheckContext", "Rule", "RuleResult", "check_rules", "consistent_view"]
