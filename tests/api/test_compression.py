"""Answers compressed with gzip: which, with which ETag, and that the ages in them stay true."""

from __future__ import annotations

import gzip
import json
from datetime import timedelta
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from tests.api_fixtures import Caller
from tests.factories import make_match, make_ref

pytestmark = pytest.mark.django_db


def unpacked(response: HttpResponse) -> Any:
    assert response["Content-Encoding"] == "gzip"
    assert int(response["Content-Length"]) == len(response.content)
    return json.loads(gzip.decompress(response.content))


@pytest.fixture
def address() -> str:
    return f"/api/v1/matches/{make_ref(make_match(now=timezone.now())).match_id}"


@pytest.mark.parametrize("accepted", ["gzip", "br, gzip;q=0.8", "*", "GZIP ; q=1.0", "identity;q=0, gzip"])
def test_a_body_is_compressed_for_a_client_that_accepts_it(caller: Caller, address: str, accepted: str) -> None:
    plain, packed = caller.get(address), caller.get(address, Accept_Encoding=accepted)
    assert {**unpacked(packed), "_metadata": None} == {**plain.json(), "_metadata": None}
    assert len(packed.content) < len(plain.content)
    assert plain["Vary"] == packed["Vary"] == "Authorization, Accept-Encoding"


@pytest.mark.parametrize("accepted", ["", "br", "identity", "gzip;q=0", "gzip; q=0.000", "*;q=0", "gzip;q=0, *"])
def test_a_body_is_plain_for_any_other_client(caller: Caller, address: str, accepted: str) -> None:
    response = caller.get(address, Accept_Encoding=accepted)
    assert ("Content-Encoding" in response, response.json()["sequence"]) == (False, 1)


def test_each_form_has_an_etag_of_its_own_and_both_are_known(caller: Caller, address: str) -> None:
    plain, packed = caller.get(address)["ETag"], caller.get(address, Accept_Encoding="gzip")["ETag"]
    assert packed == plain[:-1] + '-gzip"'
    for known, accepted in ((plain, ""), (packed, "gzip"), (packed, ""), (f"W/{packed}", "gzip"), (plain, "gzip")):
        again = caller.get(address, If_None_Match=known, Accept_Encoding=accepted)
        assert (again.status_code, again["ETag"], again.content) == (304, known.removeprefix("W/"), b"")
    assert caller.get(address, If_None_Match='"other-gzip"', Accept_Encoding="gzip").status_code == 200


@pytest.mark.requirement("BX-1", "FR-013")
def test_the_age_in_a_compressed_body_is_that_of_the_moment(caller: Caller) -> None:
    ref = make_ref(make_match(now=timezone.now() - timedelta(seconds=5)))
    address = f"/api/v1/matches/{ref.match_id}"
    assert 5 <= unpacked(caller.get(address, Accept_Encoding="gzip"))["_metadata"]["data_age_seconds"] < 900
    ref.match.last_scraper_update = timezone.now() - timedelta(seconds=1000)
    ref.match.save()
    response = caller.get(address, Accept_Encoding="gzip")
    age = unpacked(response)["_metadata"]["data_age_seconds"]
    assert (age >= 1000, str(age)) == (True, response["X-Data-Age-Seconds"])


def test_small_answers_and_refusals_are_plain(caller: Caller) -> None:
    for address, status in (("/api/v1/matches", 200), ("/api/v1/matches/7", 404)):
        response = caller.get(address, Accept_Encoding="gzip")
        assert (response.status_code, "Content-Encoding" in response) == (status, False)


def test_the_description_of_the_api_is_compressed_and_conditional(anonymous: Client) -> None:
    plain = anonymous.get("/api/schema")
    packed = anonymous.get("/api/schema", headers={"Accept-Encoding": "gzip, deflate, br, zstd"})
    assert unpacked(packed) == plain.json()
    assert len(packed.content) * 8 < len(plain.content)
    assert packed["Vary"] == "Accept-Encoding"
    for etag in (plain["ETag"], packed["ETag"]):
        again = anonymous.get("/api/schema", headers={"If-None-Match": etag})
        assert (again.status_code, again["ETag"]) == (304, etag)
