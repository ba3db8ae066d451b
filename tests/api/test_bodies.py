"""Request bodies: limited in size whatever their declared length is, and read when they are chunked."""

import io
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.http import HttpResponse

from tests.api_fixtures import Caller
from tests.patience import stretched
from victoryline.lib.http import body_limits
from victoryline.lib.http.renderers import MAX_BODY_BYTES

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("BX-22")]

ADDRESS = "/api/scrape/retry-failed"
GOOD = json.dumps({"dry_run": True, "error_class": "transient"}).encode()


class Drip(io.BytesIO):
    """Returns a body in small pieces, as a network does, and counts the bytes that were read."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(min(size if size is not None and size >= 0 else 1000, 1000))


def send(caller: Caller, body: Any, **environ: Any) -> HttpResponse:
    return caller.client.generic(
        "POST",
        ADDRESS,
        headers={"Authorization": f"Bearer {caller.token}"},
        **{"CONTENT_TYPE": "application/json", "wsgi.input": body, "wsgi.input_terminated": True, **environ},
    )


def in_chunks(caller: Caller, body: io.BytesIO) -> HttpResponse:
    return send(caller, body, HTTP_TRANSFER_ENCODING="chunked")


class TestInChunks:
    def test_are_read(self, operator: Caller) -> None:
        assert in_chunks(operator, Drip(GOOD)).status_code == 200
        wrong = in_chunks(operator, Drip(b'{"dry_run": "perhaps"}'))
        assert (wrong.status_code, list(wrong.json()["invalid"])) == (400, ["dry_run"])

    def test_are_refused_when_they_are_not_json(self, operator: Caller) -> None:
        assert in_chunks(operator, Drip(b"{")).status_code == 400

    def test_are_refused_when_they_do_not_end(self, operator: Caller) -> None:
        body = Drip(b" " * (MAX_BODY_BYTES * 4))
        response = in_chunks(operator, body)
        assert (response.status_code, response.json()["code"]) == (413, "payload-too-large")
        assert body.tell() == MAX_BODY_BYTES + 1  # no more was read than needed to see that it is too large
        assert response["X-RateLimit-Remaining"] == "999"

    def test_of_anonymous_callers_are_not_read(self, operator: Caller) -> None:
        operator.token = "a.b.c"
        body = Drip(GOOD)
        assert in_chunks(operator, body).status_code == 401
        assert body.tell() == 0


class TestDeclaredLength:
    def test_too_large_is_refused_unread(self, operator: Caller) -> None:
        body = Drip(GOOD)
        response = send(operator, body, CONTENT_LENGTH=str(MAX_BODY_BYTES + 1))
        assert (response.status_code, body.tell()) == (413, 0)

    def test_at_the_limit_is_read(self, operator: Caller) -> None:
        body = GOOD.ljust(MAX_BODY_BYTES)
        assert send(operator, Drip(body), CONTENT_LENGTH=str(len(body))).status_code == 200

    @pytest.mark.parametrize("declared", ["5", "-1", "x", "1e3"])
    def test_that_is_wrong_is_no_server_error(self, operator: Caller, declared: str) -> None:
        assert send(operator, Drip(GOOD), CONTENT_LENGTH=declared).status_code in {200, 400}

    def test_a_declared_length_above_the_body_is_ignored(self, operator: Caller) -> None:
        assert send(operator, Drip(GOOD), CONTENT_LENGTH="1000").status_code == 200


class Stuck(io.BytesIO):
    """A body that blocks until `ends` is set."""

    def __init__(self, ends: threading.Event) -> None:
        super().__init__()
        self.ends, self.is_waited_for = ends, threading.Event()

    def read(self, size: int | None = -1) -> bytes:
        self.is_waited_for.set()
        self.ends.wait(stretched(20))
        return b""


def limited(body: io.BytesIO, address: str) -> body_limits.LimitedBody:
    return body_limits.LimitedBody(body, {"REMOTE_ADDR": address})


@contextmanager
def held(*addresses: str) -> Iterator[None]:
    """Starts requests from these addresses whose bodies never arrive."""
    ends = threading.Event()
    bodies = [Stuck(ends) for _ in addresses]
    readers = [
        threading.Thread(target=limited(body, address).read) for body, address in zip(bodies, addresses, strict=True)
    ]
    for reader, body in zip(readers, bodies, strict=True):
        reader.start()
        assert body.is_waited_for.wait(stretched(10))
    try:
        yield
    finally:
        ends.set()
        for reader in readers:
            reader.join(stretched(10))


class TestStuckBodies:
    @pytest.fixture(autouse=True)
    def slots(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(body_limits, "slots", body_limits.BodySlots())

    @pytest.mark.parametrize("how", [{"CONTENT_LENGTH": str(len(GOOD))}, {"HTTP_TRANSFER_ENCODING": "chunked"}])
    def test_hold_only_some_of_the_threads(self, operator: Caller, how: dict[str, str]) -> None:
        with held("192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.2"):
            self.assert_refused(operator, how)
        assert send(operator, limited(io.BytesIO(GOOD), "192.0.2.3"), **how).status_code == 200

    def assert_refused(self, operator: Caller, how: dict[str, str]) -> None:
        response = send(operator, limited(io.BytesIO(GOOD), "192.0.2.3"), **how)
        assert (response.status_code, response.json()["detail"]) == (503, body_limits.REFUSAL)
        assert int(response["Retry-After"]) >= 1
        assert operator.get("/api/v1/matches").status_code == 200

    def test_of_one_address_leave_slots_for_other_addresses(self) -> None:
        with held(*["192.0.2.1"] * body_limits.MAX_WAITING_PER_CLIENT):
            with pytest.raises(body_limits.TooManyBodies):
                limited(io.BytesIO(GOOD), "192.0.2.1").read()
            assert limited(io.BytesIO(GOOD), "192.0.2.2").read() == GOOD

    def test_are_logged_once_a_minute_with_their_addresses(self, caplog: pytest.LogCaptureFixture) -> None:
        with held("192.0.2.1", "192.0.2.1"):
            for _ in range(3):
                with pytest.raises(body_limits.TooManyBodies):
                    limited(io.BytesIO(GOOD), "192.0.2.1").read()
        (line,) = [record for record in caplog.records if record.__dict__.get("action") == "bodies_stuck"]
        assert line.__dict__["held_by"] == {"192.0.2.1": 2}

    def test_every_body_is_read_through_a_slot(self) -> None:
        def read_one(environ: dict[str, Any]) -> bytes:
            part: bytes = environ["wsgi.input"].read(1)
            return part

        seen: dict[str, Any] = {"wsgi.input": io.BytesIO(b"abc\nd")}
        application = body_limits.BodyLimit(lambda environ, _: [environ["wsgi.input"].readline(), read_one(environ)])
        application(seen, None)
        assert isinstance(seen["wsgi.input"], body_limits.LimitedBody)
