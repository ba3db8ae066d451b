"""Pages and answers are stored without credentials and personal data."""

from __future__ import annotations

import time

import pytest

from victoryline.lib.redaction import clean, clean_document

SECRET = "S3cr3tS3cr3tS3cr3t"
SIZE = 520_000

pytestmark = pytest.mark.requirement("FS-21")


@pytest.mark.parametrize(
    "text",
    [
        f'{{"sessionId": "{SECRET}"}}',
        f'{{"accessToken":"{SECRET}"}}',
        f'{{\\"token\\":\\"{SECRET}\\"}}',
        f"window.settings = {{apiKey: '{SECRET}'}}",
        f'<div data-state="{{&quot;authToken&quot;:&quot;{SECRET}&quot;}}">',
        f'<input type="hidden" name="csrfmiddlewaretoken" value="{SECRET}">',
        f'<input value="{SECRET}" type="hidden" name="_token">',
        f'<meta name="csrf-token" content="{SECRET}">',
        f'<meta content="{SECRET}" name="csrf-token">',
        f'<script src="https://maps.example/js?key={SECRET}&v=3">',
        f'<a href="/feed?page=2&amp;access_token={SECRET}&amp;x=1">',
        f'"url":"https://x.example/a?a=1\\u0026sig={SECRET}"',
        f"https://user:{SECRET}@x.example/",
        f'document.cookie = "sid={SECRET}; path=/"',
        f"Set-Cookie: sid={SECRET}; HttpOnly",
        f"Authorization: Bearer {SECRET}",
        f"-----BEGIN RSA PRIVATE KEY-----\n{SECRET}\n-----END RSA PRIVATE KEY-----",
        f"AIza{SECRET}{SECRET}",
        f"ghp_{SECRET}",
        f"sk_live_{SECRET}",
        f"{SECRET}@example.co.uk",
        f"mailto:{SECRET}%40example.org",
    ],
)
def test_hides(text: str) -> None:
    assert SECRET not in clean_document(text)
    assert "***" in clean_document(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"key": "13KM", "author": "Jane", "signal": "go", "design": "x", "codes": ["a"]}',
        '<h1 class="team-name">India</h1> 187/5 @ 20.0 overs',
        '<input name="q" value="India vs Australia">',
        "https://crex.example/scoreboard/13KM?tab=info&innings=2",
        "score@12.3",
    ],
)
def test_leaves_match_data_unchanged(text: str) -> None:
    assert clean_document(text) == text


@pytest.mark.parametrize(
    "unit",
    [
        "a", "a.", "a-", "token-", "?token=", 'name="token" ', 'value="x" ', "a@", "@a.", "eyJaaaaaaaaa.", " ",
        "-----BEGIN PRIVATE KEY-----", '"token":', "http://a:", "cookie ", "bearer ", "token \t", "sessionid_",
        "&quot;",
    ],
)  # fmt: skip
def test_no_text_can_make_it_run_for_long(unit: str) -> None:
    """Pages are untrusted: half a megabyte of hostile text takes seconds at most."""
    text = (unit * (SIZE // len(unit) + 1))[:SIZE]
    began = time.process_time()
    clean_document(text)
    assert time.process_time() - began < 15


def test_lines_of_logs_keep_to_the_shorter_list() -> None:
    assert clean("sent to ann@example.org") == "sent to ann@example.org"
    assert SECRET not in clean(f"asked https://x.example/?token={SECRET}")
