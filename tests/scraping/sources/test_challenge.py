"""Detection of bot challenges in pages and of errors in response bodies."""

from __future__ import annotations

from typing import Any

import pytest

from scraping.errors import AuthExpired, Blocked, Gone, ScrapingError, Transient
from scraping.sources.parsing import is_challenge, raise_if_error_body


@pytest.mark.requirement("BX-17")
@pytest.mark.parametrize(
    ("html", "expected"),
    [
        pytest.param("<title>Just a moment...</title>", True, id="waiting room"),
        pytest.param("<title>Attention Required! | Shield</title>", True, id="attention required"),
        pytest.param('<form id="challenge-form" action="/x">', True, id="challenge form"),
        pytest.param('<div class="box h-captcha" data-sitekey="1">', True, id="captcha box"),
        pytest.param('<form action="/captcha/verify">', True, id="captcha form"),
        pytest.param('<div class="grecaptcha-badge">', False, id="a captcha service's badge"),
        pytest.param('<script src="https://captcha.test/api.js">', False, id="a captcha service's script"),
        pytest.param("<title>Challenge Cup final, live score</title>", False, id="a cup called challenge"),
        pytest.param('<div class="team-name">ORC</div>', False, id="a match"),
        pytest.param("", False, id="nothing"),
    ],
)
def test_a_challenge_is_known_by_its_title_or_its_form(html: str, expected: bool) -> None:
    assert is_challenge(html) is expected


@pytest.mark.requirement("BX-17")
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"error": {"code": 403, "reason": "challenge"}}, Blocked),
        ({"error": {"code": 429}}, Blocked),
        ({"error": {"reason": "Captcha needed"}}, Blocked),
        ({"error": {"code": 401}}, AuthExpired),
        ({"error": {"code": 404, "message": "Not Found"}}, Gone),
        ({"error": {"code": 410}}, Gone),
        ({"error": {"code": 502}}, Transient),
        ({"error": {"code": 400}}, None),
        ({"error": "words"}, None),
        ({"event": {}}, None),
        ([], None),
    ],
)
def test_an_error_body_is_the_error_it_names(body: Any, kind: type[ScrapingError] | None) -> None:
    if kind is None:
        raise_if_error_body(body, "")
        return
    with pytest.raises(kind):
        raise_if_error_body(body, "")
