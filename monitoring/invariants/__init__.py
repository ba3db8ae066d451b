"""Invariants of the database, each a rule that lists the rows which break it.

Guards against damage that raises no error: a task that will never run, data without the task that wrote it, a source
charged for our own faults. Read-only, from one consistent view, cheap enough for a running system.
"""

from monitoring.invariants import data, journal, leftovers  # noqa: F401  (adds their rules)
from monitoring.invariants.rules import BOUND_SECONDS, RULES, CheckContext, RuleResult, check_rules, consistent_view

__all__ = ["BOUND_SECONDS", "RULES", "CheckContext", "RuleResult", "check_rules", "consistent_view"]
