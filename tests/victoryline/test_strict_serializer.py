"""Text is accepted exactly as the OpenAPI document describes it."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st
from rest_framework import serializers

from victoryline.lib.http.strict_serializer import NOT_BLANK

SPACES = st.sampled_from([" ", "\t", "\n", "\x00", "\x1c", "\x1f", "\x85", "\xa0", "\u2003", "a"])
# For characters that are spaces in JavaScript only, the description is stricter than the server.
ECMA_ALONE = "\ufeff"
# JavaScript's `\s`, spelled out for Python's `re`.
ECMA_SPACE = r"\t\n\x0b\x0c\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"


def is_taken(text: str) -> bool:
    try:
        serializers.CharField().run_validation(text)
    except serializers.ValidationError:
        return False
    return True


@given(st.one_of(st.text(max_size=6), st.text(SPACES, max_size=4)).filter(lambda text: ECMA_ALONE not in text))
@example("\x00")
@example("a\x00")
@example("\x1c")
def test_text_is_taken_where_the_description_says_so(text: str) -> None:
    for_javascript = NOT_BLANK.replace(r"\s", ECMA_SPACE)
    found = {bool(re.search(pattern.removesuffix("$") + r"\Z", text)) for pattern in (NOT_BLANK, for_javascript)}
    assert found == {is_taken(text)}
