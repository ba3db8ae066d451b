"""Adds the open pages for probes and monitoring to the OpenAPI document: /health, /status, /metrics.

They are no views of the REST framework, which would describe them. Listed in SPECTACULAR_SETTINGS after the hook that
completes the operations of the API: these have neither a token nor a consumer's rate limit.
"""

from typing import Any

from victoryline.lib.http.problems import MEDIA_TYPE

Schema = dict[str, Any]
TEXT, NUMBER, INTEGER, FLAG = {"type": "string"}, {"type": "number"}, {"type": "integer"}, {"type": "boolean"}
ROWS, OBJECT = {"type": "array", "items": {"type": "object"}}, {"type": "object"}
JSON, PLAIN = "application/json", "text/plain"

Fields = dict[str, tuple[Schema, str]]  # schema and description

HEALTH: Fields = {
    "status": ({"type": "string", "enum": ["healthy", "degraded", "down"]}, "down is answered with 503."),
    "timestamp": (TEXT, "When it was evaluated."),
    "active_scraper_count": (INTEGER, ""),
    "total_matches_scraping": (INTEGER, ""),
    "scrapers": (ROWS, "Each active scraper with its counters."),
    "resources": (OBJECT, "Memory in megabytes, CPU in percent."),
    "errors": (OBJECT, "Counts of the last minute and hour, and circuit breakers that are not closed."),
    "performance": (OBJECT, "Latency of updates in milliseconds, updates a minute."),
    "reason": (TEXT, "Why it is not healthy; empty if it is."),
    "uptime_seconds": (NUMBER, ""),
    "total_memory_mb": (NUMBER, ""),
    "per_match_status": (ROWS, "match_id, url, last_update_iso8601, error_count and memory_mb of each live match."),
    "queue": (OBJECT, "Number and age of waiting tasks."),
}
STATUS: Fields = {
    "grade": ({"type": "string", "enum": ["HEALTHY", "DEGRADED", "FAILING", "RECOVERING"]}, ""),
    "reason": (TEXT, "Why it has this grade."),
    "generated_at": (NUMBER, "The time of the figures, as Unix time."),
    "matches": (ROWS, "The cards of the status page; empty where `scores_are_hidden`."),
    "match_counts": (OBJECT, "Live, upcoming and finished matches."),
    "scores_are_hidden": (FLAG, "true: matches are shown to staff only (STATUS_PAGE_PUBLIC_SCORES)."),
    "freshness_stats": (
        OBJECT,
        "Ages of live matches in seconds: median, p50, p95, p99, max, count, samples (all).",
    ),
}
PROBE: Fields = {"status": (TEXT, ""), "reasons": ({"type": "array", "items": TEXT}, "Why it is not ready.")}
LIVE: Fields = {"status": ({"type": "string", "enum": ["live"]}, "")}


def add_open_pages(result: Schema, generator: Any, request: Any, public: bool) -> Schema:
    health = _object(HEALTH, list(HEALTH))
    probe, live = _object(PROBE, ["status", "reasons"]), _object(LIVE, ["status"])
    status = _object(STATUS, ["grade", "reason", "generated_at", "matches"])
    pages = {
        "/health": _page(
            "health",
            "See whether the system works",
            "For monitoring systems; at most a second old. Balancers ask /health/ready, probes /health/live. 404 if "
            "HEALTH_CHECK_ENABLED is false.",
            {200: (health, JSON, "healthy or degraded"), 503: (health, JSON, "down")},
        ),
        "/health/live": _page(
            "health_live", "See whether the process runs", "Makes no query.", {200: (live, JSON, "It runs")}
        ),
        "/health/ready": _page(
            "health_ready",
            "See whether requests can be served",
            "Checks database, migrations and the heartbeat of a worker.",
            {200: (probe, JSON, "Ready"), 503: (probe, JSON, "Not ready")},
        ),
        "/status": _page(
            "status",
            "Read the figures of the status page",
            "Grade, ages, queue, workers, sources, alerts and settings without secrets. Without matches for visitors "
            "without a login, unless STATUS_PAGE_PUBLIC_SCORES is on. Limited by address.",
            {200: (status, JSON, "The figures"), 429: (None, MEDIA_TYPE, "Too many requests from this address")},
        ),
        "/metrics": _page(
            "metrics",
            "Read the metrics",
            "Prometheus' text format: the figures of the whole system, and the process's own; with ?scope=process only "
            "these. For the networks of METRICS_ALLOWED_NETWORKS, elsewhere with the bearer token "
            "METRICS_TOKEN. Limited by address. 404 if ENABLE_PROMETHEUS_METRICS is false.",
            {
                200: (TEXT, PLAIN, "The metrics"),
                401: (None, MEDIA_TYPE, "Neither an allowed network nor the token"),
                429: (None, MEDIA_TYPE, "Too many requests from this address"),
            },
        ),
    }
    result["paths"] |= {path: {"get": page} for path, page in pages.items()}
    return result


def _object(fields: Fields, required: list[str]) -> Schema:
    shown = {name: {**kind, "description": text} if text else dict(kind) for name, (kind, text) in fields.items()}
    return {"type": "object", "properties": shown, "required": required}


def _page(name: str, summary: str, description: str, answers: dict[int, tuple[Schema | None, str, str]]) -> Schema:
    """`answers`: schema (None: a problem document), media type and description by status."""
    problem = {"$ref": "#/components/schemas/Problem"}
    responses = {
        str(code): {"description": text, "content": {kind: {"schema": schema or problem}}}
        for code, (schema, kind, text) in answers.items()
    }
    described = {"operationId": name, "summary": summary, "description": description, "tags": ["system"]}
    return {**described, "security": [], "responses": responses}
