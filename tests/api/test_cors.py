"""Cross-origin requests: the API allows only the origins in CORS_ORIGINS, the admin allows none."""

from collections.abc import Callable
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client

from apiauth.limits import Check, limiter
from tests.api_fixtures import Caller
from victoryline import configuration

LIST = "/api/v1/matches"
SITE, OTHER = "https://scores.example", "https://evil.example"
ASKS = {"Origin": SITE, "Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "authorization"}

pytestmark = pytest.mark.django_db


@pytest.fixture
def allow(settings: Any) -> Callable[..., None]:
    """Applies CORS_ORIGINS before the first request of a client."""

    def allow(*sites: str) -> None:
        settings.CORS_ALLOW_ALL_ORIGINS = "*" in sites
        settings.CORS_ALLOWED_ORIGINS = [site for site in sites if site != "*"]
        first, *others = settings.MIDDLEWARE
        settings.MIDDLEWARE = [first, "corsheaders.middleware.CorsMiddleware", *others]

    return allow


def cors_headers(response: HttpResponse) -> dict[str, str]:
    return {name: value for name, value in response.headers.items() if name.lower().startswith("access-control-")}


def varies_by_origin(response: HttpResponse) -> bool:
    return "origin" in response.headers.get("Vary", "").lower().split(", ")


class TestWithoutSites:
    def test_no_header_is_sent(self, caller: Caller) -> None:
        response = caller.get(LIST, Origin=SITE)
        assert cors_headers(response) == {}
        assert not varies_by_origin(response)
        assert cors_headers(caller.client.options(LIST, headers=ASKS)) == {}


class TestPreflight:
    @pytest.mark.parametrize("path", [LIST, f"{LIST}/1/events", "/cricket-data", "/token/generate-token", "/api/v1/x"])
    def test_needs_no_token_and_no_quota(self, allow: Callable[..., None], anonymous: Client, path: str) -> None:
        allow(SITE)
        before = limiter().check(Check("address:127.0.0.1", 60, is_counted=False))[0].rate_limit.remaining
        response = anonymous.options(path, headers=ASKS)
        assert (response.status_code, response.content) == (200, b"")
        assert response["Access-Control-Allow-Origin"] == SITE
        assert response["Access-Control-Allow-Methods"] == "GET, HEAD, POST, OPTIONS"
        wanted = {"Authorization", "Content-Type", "If-None-Match", "Idempotency-Key", "X-API-Key", "X-Request-Id"}
        assert wanted <= set(response["Access-Control-Allow-Headers"].split(", "))
        assert int(response["Access-Control-Max-Age"]) >= 600
        assert "Access-Control-Allow-Credentials" not in response
        assert response["X-Request-Id"]
        assert limiter().check(Check("address:127.0.0.1", 60, is_counted=False))[0].rate_limit.remaining == before

    def test_of_another_site_gets_no_permission(self, allow: Callable[..., None], anonymous: Client) -> None:
        allow(SITE)
        response = anonymous.options(LIST, headers={**ASKS, "Origin": OTHER})
        assert (response.status_code, cors_headers(response)) == (200, {})

    def test_an_options_request_that_is_no_preflight_reaches_the_view(
        self, allow: Callable[..., None], anonymous: Client
    ) -> None:
        allow(SITE)
        assert anonymous.options(LIST, headers={"Origin": SITE}).status_code == 401


class TestAnswers:
    def test_expose_all_our_headers(self, allow: Callable[..., None], caller: Caller) -> None:
        allow("https://first.example", SITE)
        response = caller.get(LIST, Origin=SITE)
        assert response["Access-Control-Allow-Origin"] == SITE
        assert varies_by_origin(response)
        shown = set(response["Access-Control-Expose-Headers"].split(", "))
        ours = {name for name in response.headers if name.startswith("X-") and "-Options" not in name}
        assert ours <= shown
        assert {"ETag", "Last-Modified", "Link", "Location", "Retry-After", "X-Next-Update-In"} <= shown
        assert "Access-Control-Allow-Credentials" not in response

    @pytest.mark.parametrize("origin", [OTHER, "null", f"{SITE}.evil.example", "http://scores.example", f"{SITE}:8443"])
    def test_are_hidden_from_other_sites(self, allow: Callable[..., None], caller: Caller, origin: str) -> None:
        allow(SITE)
        response = caller.get(LIST, Origin=origin)
        assert (response.status_code, cors_headers(response)) == (200, {})
        assert varies_by_origin(response)

    def test_are_readable_by_every_site_with_a_star(self, allow: Callable[..., None], caller: Caller) -> None:
        allow("*")
        response = caller.get(LIST, Origin=OTHER)
        assert response["Access-Control-Allow-Origin"] == "*"

    @pytest.mark.parametrize(
        ("path", "status"), [(LIST, 401), ("/api/v1/nothing", 404), ("/health/nothing", 404), ("/metrics/x", 404)]
    )
    def test_refusals_are_readable(self, allow: Callable[..., None], anonymous: Client, path: str, status: int) -> None:
        allow(SITE)
        response = anonymous.get(path, headers={"Origin": SITE})
        assert (response.status_code, response["Access-Control-Allow-Origin"]) == (status, SITE)

    def test_expose_the_headers_that_a_refusal_refers_to(self, allow: Callable[..., None], caller: Caller) -> None:
        """`what_to_do` of a 405 names `Allow`; docs/api.md counts ages up to `Date`."""
        allow(SITE)
        response = caller.client.delete(LIST, headers=caller._headers({"Origin": SITE}))
        assert (response.status_code, response["Allow"]) == (405, "GET, HEAD, OPTIONS")
        assert {"Allow", "Date"} <= set(response["Access-Control-Expose-Headers"].split(", "))

    def test_server_errors_are_readable(
        self, allow: Callable[..., None], caller: Caller, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(*_: object, **__: object) -> None:
            raise RuntimeError

        monkeypatch.setattr("scraping.api.match_lists.MatchListView.get", broken)
        allow(SITE)
        response = caller.get(LIST, Origin=SITE)
        assert (response.status_code, response["Access-Control-Allow-Origin"]) == (500, SITE)

    @pytest.mark.parametrize("path", ["/admin/", "/admin/login/", "/"])
    @pytest.mark.parametrize("site", ["*", SITE])
    def test_pages_are_never_readable_by_other_sites(
        self, allow: Callable[..., None], anonymous: Client, path: str, site: str
    ) -> None:
        allow(site)
        assert cors_headers(anonymous.get(path, headers={"Origin": SITE})) == {}
        assert cors_headers(anonymous.options(path, headers=ASKS)) == {}


class TestConfiguration:
    @pytest.mark.parametrize(
        "origin",
        [
            "example.com", "https://example.com/", "https://example.com/path", "ftp://example.com", "null",
            "https://*.example.com", "https://user@example.com", "https://example.com:443", "http://example.com:x",
            "https://", "https://example.com?x", "https://exa mple.com", "https://example.com:",
        ],
    )  # fmt: skip
    def test_refuses_an_origin_that_no_browser_sends(self, origin: str) -> None:
        with pytest.raises(configuration.ConfigError, match=r"CORS_ORIGINS has .* an origin is scheme://host"):
            configuration.load({"CORS_ORIGINS": f"{SITE},{origin}"})

    @pytest.mark.parametrize(
        "origin", ["*", "https://example.com", "http://localhost:3000", "https://Example.com:8443", "http://[::1]:8080"]
    )
    def test_accepts_origins_that_browsers_send(self, origin: str) -> None:
        assert configuration.load({"CORS_ORIGINS": origin}).cors_origins == (origin,)
