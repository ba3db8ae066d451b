"""The bench of nights: which nights its seeds are, and what it sums up."""

from __future__ import annotations

from benchmarks.benches.night import CALM, HELL, USUAL, Plan, plan_of, summary

TOLD = {
    **dict.fromkeys(("hours", "age_p99_s", "fresh_share", "uptime_share", "recovery_p95_s"), 1.0),
    **dict.fromkeys(("matches", "polls", "recoveries", "breakers_opened", "source_breakers_opened", "pauses"), 2),
    **dict.fromkeys(("alerts", "messages_an_hour_peak"), 3),
    "grade": "HEALTHY",
    "violations": [],
}


def test_a_seed_always_means_the_same_night() -> None:
    assert plan_of(5) == plan_of(5)
    assert (plan_of(5).faults, plan_of(6).faults) == (CALM, HELL)
    assert [(plan_of(seed).matches, plan_of(seed).faults) for seed in (9, 29)] == [(100, USUAL), (200, HELL)]


def test_violations_are_counted_by_rule_and_told_with_their_seed() -> None:
    plans = [Plan(5, 2, 1.0, CALM, False), Plan(6, 2, 1.0, HELL, False)]
    broken = {**TOLD, "seed": 6, "faults": HELL, "violations": [{"rule": "starved", "what": "a match waited"}]}
    found = summary(plans, [{**TOLD, "seed": 5, "faults": CALM}, broken])
    assert (found["seeds"], found["violations"], found["broken_rules"]) == (2, 1, {"starved": 1})
    assert found["problems"] == ["seed 6: starved: a match waited"]
    assert set(found["nights"]) == {CALM, HELL}
