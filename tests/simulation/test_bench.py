"""The bench of simulated nights: the night of a seed, and the summary."""

from __future__ import annotations

from benchmarks.benches.night import CALM, HELL, plan_of, summary

RESULT = {
    **dict.fromkeys(("hours", "age_p99_s", "fresh_share", "uptime_share", "recovery_p95_s"), 1.0),
    **dict.fromkeys(("matches", "polls", "recoveries", "breakers_opened", "source_breakers_opened", "pauses"), 2),
    **dict.fromkeys(("alerts", "errors", "deaths", "rescues"), 3),
    "grade": "HEALTHY",
    "violations": [],
}


def test_a_seed_always_means_the_same_night() -> None:
    assert plan_of(5) == plan_of(5)
    assert (plan_of(2).faults, plan_of(3).faults) == (CALM, HELL)


def test_counts_violations_by_rule_and_names_their_seed() -> None:
    violation = {"t": 1.0, "rule": "stale", "detail": "match 1001 is old"}
    found = summary(
        [{**RESULT, "seed": 5, "faults": CALM}, {**RESULT, "seed": 6, "faults": HELL, "violations": [violation]}]
    )
    assert (found["seeds"], found["violations"], found["violated_rules"]) == (2, 1, {"stale": 1})
    assert found["problems"] == ["seed 6: stale: match 1001 is old"]
    assert set(found["nights"]) == {CALM, HELL}
