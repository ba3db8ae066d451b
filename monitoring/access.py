"""Access to the open pages: match data needs a token (FR-026) or a login, metrics a network or a token."""

import hmac
import ipaddress
from functools import lru_cache
from typing import Any

import orjson
from django.conf import settings
from django.http import HttpRequest, HttpResponse

from victoryline.lib.availability import DATABASE_AWAY
from victoryline.lib.http.error_pages import answer
from victoryline.lib.http.open_limits import address_of

METRICS_CHALLENGE = 'Bearer realm="metrics"'


def may_see_scores(request: HttpRequest) -> bool:
    """Returns whether the status page shows matches: STATUS_PAGE_PUBLIC_SCORES is on, or staff is logged in."""
    config = settings.CONFIG
    if config.status_page_public_scores == "true" or (config.status_page_public_scores == "demo" and config.demo):
        return True
    try:  # a request without a session cookie costs no query
        return bool(request.user.is_active and getattr(request.user, "is_staff", False))
    except DATABASE_AWAY:
        return False


@lru_cache(maxsize=2)  # the document changes once a second, and many visitors ask for it
def without_matches(document: bytes) -> bytes:
    """Returns the /status document with counts in place of matches."""
    status: dict[str, Any] = orjson.loads(document)
    status |= {"matches": [], "scores_are_hidden": True}
    status["paused_matches"] = [{"id": one["id"], "until": one["until"]} for one in status.get("paused_matches", ())]
    return orjson.dumps(status)


def may_read_metrics(address: str, authorization: str) -> bool:
    config = settings.CONFIG
    offered = authorization.encode()
    if config.metrics_token and hmac.compare_digest(offered, f"Bearer {config.metrics_token}".encode()):
        return True
    try:  # an IPv6 client is its /64
        client = ipaddress.ip_network(address.removeprefix("::ffff:"), strict=False)
    except ValueError:
        return False
    networks = map(ipaddress.ip_network, config.metrics_allowed_networks)
    return any(each.version == client.version and each.overlaps(client) for each in networks)


def refuse_metrics(request: HttpRequest) -> HttpResponse | None:
    if may_read_metrics(address_of(request), request.headers.get("Authorization", "")):
        return None
    refusal = answer(
        request,
        401,
        "Metrics are served to the networks of METRICS_ALLOWED_NETWORKS, and elsewhere with the bearer token "
        "METRICS_TOKEN. Ask the operator of this service.",
    )
    refusal.headers["WWW-Authenticate"] = METRICS_CHALLENGE
    return refusal
