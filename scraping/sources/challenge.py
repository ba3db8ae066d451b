"""Recognises bot challenges and JSON errors that come with status 200 in place of the real answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from scraping.errors import Blocked, error_for_status
from scraping.sources import loose

_TITLE = re.compile(
    r"<title[^>]*>[^<]*(?:just a moment|attention required|access denied|are you (?:a )?(?:human|robot)|"
    r"verify you are human|security check|captcha|request blocked)",
    re.IGNORECASE,
)
# Whole class names and ids only: ordinary pages carry the badge of a captcha service ("grecaptcha-badge") too.
_FORM = re.compile(
    r"""(?:id|class|name|action)=["'](?:[^"']*[\s/])?"""
    r"""(?:challenge-form|challenge-stage|cf-turnstile|g-recaptcha|h-captcha|captcha[\w-]*)(?=[\s"'/?])""",
    re.IGNORECASE,
)


def is_challenge(html: str) -> bool:
    return bool(_TITLE.search(html) or _FORM.search(html))


def raise_if_challenge(html: str, url: str) -> None:
    """Raises Blocked if the page is a bot challenge."""
    if is_challenge(html):
        raise Blocked("the page is a bot challenge", url=url, evidence=html[:2000])


def raise_if_error_body(data: Any, url: str) -> None:
    """Raises the error that a body like {"error": {"code": 403, "reason": "challenge"}} reports."""
    if not isinstance(data, dict) or not isinstance(data.get("error"), dict):
        return
    error: Mapping[str, Any] = data["error"]
    code = loose.integer(error.get("code")) or 0
    reason = loose.text(error.get("reason") or error.get("message"), 100)
    is_refusal = any(name in reason.lower() for name in ("challenge", "captcha"))
    kind = Blocked if is_refusal else error_for_status(code)
    if kind is not None:
        raise kind(f"the body is an error: {code} {reason}".strip(), http_status=code or None, url=url)
