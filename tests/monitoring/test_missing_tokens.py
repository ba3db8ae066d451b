"""A source without a token for too long: one log line, one alert, a degraded /health, all ended by the next token."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from monitoring.alerts import alert_keys
from monitoring.health.documents import health_document
from monitoring.health.evaluation import Evaluation
from monitoring.models import Alert, Severity
from monitoring.watchdogs.sources import watch_tokens
from scraping.reading.token_cache import MissingToken
from scraping.reading.tokens import Tokens
from scraping.worker.upkeep import TokenWatch
from tests.factories import NOW, make_source

pytestmark = [pytest.mark.django_db, pytest.mark.both, pytest.mark.requirement("EC-5")]

REASON = "its token service answered 503"


class TokensOf(Tokens):
    """A worker's tokens; `seconds_missing`: by source, for how long it has had none."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds_missing: dict[str, float] = {}

    def missing(self) -> list[MissingToken]:
        return [MissingToken(key, seconds, REASON) for key, seconds in self.seconds_missing.items()]


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


@pytest.fixture
def tokens() -> TokensOf:
    make_source(key="crexpro", name="Crex Pro")
    return TokensOf()


@pytest.fixture
def check(tokens: TokensOf) -> Callable[[float], None]:
    watch = TokenWatch(tokens, worker_id="w-1")
    return lambda seconds: watch.check(now=later(seconds))


Check = Callable[[float], None]


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


def test_a_short_absence_raises_no_alert(tokens: TokensOf, check: Check) -> None:
    tokens.seconds_missing = {"crexpro": 299}
    check(0)
    assert not Alert.objects.exists()
    assert health_document(Evaluation(NOW))["status"] == "healthy"


def test_a_long_one_is_logged_once_and_raises_one_alert(
    tokens: TokensOf, check: Check, caplog: pytest.LogCaptureFixture
) -> None:
    tokens.seconds_missing = {"crexpro": 300}
    for seconds in range(0, 61, 3):
        check(seconds)
    (line,) = errors(caplog)
    assert REASON in line
    assert "SOURCE_CREDENTIALS" in line  # what to do
    alert = Alert.objects.get(key=alert_keys.TOKEN.of("crexpro"))
    assert (alert.severity, alert.count) == (Severity.WARNING, 3)
    assert alert.summary == "Crex Pro has issued no token for 5 min: only its public data is read"
    assert REASON not in alert_keys.public_text(alert, "")
    assert alert.detail["reason"] == REASON
    document = health_document(Evaluation(NOW))
    assert document["status"] == "degraded"
    assert "1 source has no token" in document["reason"]


def test_a_token_closes_the_alert(tokens: TokensOf, check: Check, caplog: pytest.LogCaptureFixture) -> None:
    tokens.seconds_missing = {"crexpro": 400}
    check(0)
    tokens.seconds_missing = {}
    check(3)
    assert Alert.objects.get().closed_at == later(3)
    assert health_document(Evaluation(NOW))["status"] == "healthy"
    tokens.seconds_missing = {"crexpro": 400}
    check(1000)
    assert (Alert.objects.count(), len(errors(caplog))) == (2, 2)


def test_one_workers_token_does_not_hide_anothers_lack(tokens: TokensOf, check: Check) -> None:
    tokens.seconds_missing = {"crexpro": 400}
    check(0)
    other = TokensOf()
    other.seconds_missing = {"crexpro": 400}
    watch = TokenWatch(other, worker_id="w-2")
    watch.check(now=later(1))
    other.seconds_missing = {}
    watch.check(now=later(2))
    assert not Alert.objects.filter(closed_at__isnull=True).exists()
    check(21)
    assert Alert.objects.filter(closed_at__isnull=True).count() == 1


def test_the_alert_of_a_dead_worker_is_closed(tokens: TokensOf, check: Check) -> None:
    tokens.seconds_missing = {"crexpro": 400}
    check(0)
    check(60)
    assert watch_tokens(later(170)) == 0
    assert watch_tokens(later(181)) == 1
    assert Alert.objects.get().closed_at == later(181)
