"""The pages that the `type` of a problem leads to: what it means, what to do. Open to everybody, as the docs are."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.template import loader
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe

from victoryline.lib.problem_kinds import KINDS


@csrf_exempt  # nothing is changed here, and a wrong method should be told that it is wrong
@require_safe
def index(request: HttpRequest) -> HttpResponse:
    return _page("Problems, and what to do about them", list(KINDS))


@csrf_exempt
@require_safe
def page(request: HttpRequest, word: str) -> HttpResponse:
    if word not in KINDS:
        raise Http404
    return _page(KINDS[word].title, [word])


def _page(title: str, words: list[str]) -> HttpResponse:
    """Without the request, and so without the database that sessions live in: it may be what is away."""
    rows = [
        {
            "word": word,
            "status": KINDS[word].status,
            "title": KINDS[word].title,
            "meaning": _with_code(KINDS[word].meaning),
            "advice": _with_code(KINDS[word].advice),
        }
        for word in words
    ]
    text = loader.render_to_string("problems.html", {"title": title, "rows": rows, "is_index": len(rows) > 1})
    return HttpResponse(text, headers={"Cache-Control": "public, max-age=3600"})


def _with_code(text: str) -> SafeString:
    """What stands between backticks is shown as code."""
    parts = enumerate(text.split("`"))
    return format_html_join(
        "", "{}", ((format_html("<code>{}</code>", each) if place % 2 else each,) for place, each in parts)
    )
