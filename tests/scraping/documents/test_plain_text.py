"""Names without accents and capitals: Python and both databases must make the same of them."""

from __future__ import annotations

import pytest

from scraping.models import Match
from scraping.models.plain_text import Plain, plain
from tests.factories import make_unread_match

NAMES = {
    "Atlético Madrid": "atletico madrid",
    "GRÊMIO": "gremio",
    "São Paulo": "sao paulo",
    "Beşiktaş": "besiktas",
    "Đà Nẵng": "đa nang",  # a letter of its own, not one with a mark
    "Łódź": "łodz",
    "o\u0308sterreich": "osterreich",
    "\uff26\uff23 Tokyo": "fc tokyo",
    "Динамо": "динамо",
    "100% _Nepal_ \\": "100% _nepal_ \\",
    "": "",
}


@pytest.mark.parametrize(("name", "expected"), NAMES.items())
def test_python(name: str, expected: str) -> None:
    assert plain(name) == expected


@pytest.mark.both
@pytest.mark.django_db
def test_the_database() -> None:
    for name in NAMES:
        make_unread_match(team_a=name)
    assert dict(Match.objects.values_list("team_a", Plain("team_a"))) == NAMES
