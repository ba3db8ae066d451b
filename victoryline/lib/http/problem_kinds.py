"""All kinds of problems that the API answers with: one table for answers, the pages at /problems/ and the docs."""

from __future__ import annotations

from typing import NamedTuple


class Kind(NamedTuple):
    """`advice` says what the client can do. The first kind of a status is its default."""

    status: int
    title: str
    meaning: str
    advice: str


KINDS: dict[str, Kind] = {
    "bad-request": Kind(
        400,
        "The request is not understood",
        "The body, the address or a header can't be read, or values in the body can't be used.",
        "Mend what `detail` names; where there is `invalid`, it names each wrong value. The same request fails again.",
    ),
    "bad-parameter": Kind(
        400,
        "A parameter has a value that can't be used",
        "A parameter of the address is unknown, or its value is not one that it takes.",
        "Mend the parameter that `parameter` names; /api/docs lists those there are.",
    ),
    "unauthorized": Kind(
        401,
        "A valid token is needed",
        "There was no token, or it has expired, is not one of ours, or its key is revoked.",
        "Get a token with POST /token/generate-token and send it as `Authorization: Bearer <token>`. If the key "
        "itself is refused, ask the operator for another.",
    ),
    "forbidden": Kind(
        403,
        "The token does not allow this",
        "We know who you are; your key has no scope for this.",
        "Ask the operator for a key with the scope that `detail` names.",
    ),
    "not-found": Kind(
        404,
        "There is no such thing here",
        "Nothing lives at this address, or what it names is not known (yet).",
        "Check the address and the id; GET /api/v1/matches lists the matches, /api/docs the addresses.",
    ),
    "method-not-allowed": Kind(
        405,
        "This address does not take that method",
        "The address exists, the method is not for it.",
        "Use one of the methods in the header `Allow`.",
    ),
    "conflict": Kind(
        409,
        "The present state does not allow this",
        "The match is in a state that doesn't allow it, or an Idempotency-Key was used for something else.",
        "Read the present state again, then decide; for something new use a new Idempotency-Key.",
    ),
    "too-old": Kind(
        410,
        "What you ask for is older than what we keep",
        "The state of the match at that time, or with that number, is no longer kept.",
        "Ask for `oldest_sequence` or later, or read the match as it is now.",
    ),
    "delta-overflow": Kind(
        410,
        "The difference reaches further back than what we keep",
        "The state of the match that you have is no longer kept, so we can't say what has changed since.",
        "Read the match whole, and go on from the `sequence` in it.",
    ),
    "payload-too-large": Kind(
        413,
        "The body is too large",
        "The body is larger than this address takes; nothing of it was used.",
        "Send less at once, in several requests.",
    ),
    "unsupported-media-type": Kind(
        415,
        "The body is in a format that is not read here",
        "Bodies are read as JSON and as nothing else.",
        "Send JSON, with the header `Content-Type: application/json`.",
    ),
    "too-many-requests": Kind(
        429,
        "The limit of requests is reached",
        "You, or without a valid token your address, have used up the requests of this minute.",
        "Wait `retry_after` seconds. Ask with `If-None-Match`: answers of 304 are free. Another tier has more.",
    ),
    "internal-error": Kind(
        500,
        "Something went wrong on our side",
        "A mistake of ours, which is logged under the request id. What is stored is as it was.",
        "Try again once; if it stays, tell us the `request_id`.",
    ),
    "unavailable": Kind(
        503,
        "The answer is not available now",
        "Our database is away and we don't know this without it. Nothing is lost.",
        "Wait `retry_after` seconds and ask again.",
    ),
    "too-stale": Kind(
        503,
        "The data is older than you accept",
        "The newest data that we have is older than your `max_age`.",
        "Wait `retry_after` seconds and ask again, or accept older data with a larger `max_age`.",
    ),
    "insufficient-memory": Kind(
        503,
        "Insufficient memory resources",
        "There is too little memory to watch another match now; the wish is noted.",
        "Nothing: the watch begins by itself when there is room.",
    ),
}


def of_status(status: int) -> str:
    """Returns the default code of a status."""
    known = _BY_STATUS.get(status)
    return known or ("internal-error" if status >= 500 else "bad-request")


_BY_STATUS: dict[int, str] = {}
for _code, _kind in KINDS.items():
    _BY_STATUS.setdefault(_kind.status, _code)
