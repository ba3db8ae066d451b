"""One POST request without redirects or proxies, and with a total time limit."""

from __future__ import annotations

import http.client
import ssl
import threading
from collections.abc import Mapping
from contextlib import closing, suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from monitoring.alerts.channels.base import DeliveryDeferred, DeliveryRejected

TIMEOUT_SECONDS = 5.0
TOTAL_SECONDS = 10.0  # also for a server that sends one byte at a time
MAX_RETRY_AFTER = 3600.0
RETRIED_STATUSES = {408, 425, 429}


def post(url: str, body: bytes, headers: Mapping[str, str], *, timeout: float = TIMEOUT_SECONDS) -> int:
    """Returns a 2xx status, else raises. Errors name only the host of the address, which may contain secrets."""
    parts = urlsplit(url)
    where = parts.hostname or "?"
    connection = _connection(parts.scheme, where, parts.port, timeout)
    timer = threading.Timer(max(timeout, TOTAL_SECONDS), _cut, [connection])
    timer.daemon = True
    timer.start()
    try:
        path = parts.path or "/"
        connection.request("POST", f"{path}?{parts.query}" if parts.query else path, body, dict(headers))
        with closing(connection.getresponse()) as answer:
            status, retry_after = answer.status, answer.headers.get("Retry-After", "")
    except TimeoutError as error:
        raise DeliveryDeferred(f"{where} did not answer within {timeout:g} s") from error
    except ssl.SSLCertVerificationError as error:
        raise DeliveryDeferred(f"the certificate of {where} is not trusted: {error.verify_message}") from error
    except (OSError, http.client.HTTPException) as error:
        raise DeliveryDeferred(f"{where} cannot be reached: {_reason(error)}") from error
    finally:
        timer.cancel()
        connection.close()
    _check_status(status, retry_after, where)
    return status


def _connection(scheme: str, host: str, port: int | None, timeout: float) -> http.client.HTTPConnection:
    if scheme == "https":
        return http.client.HTTPSConnection(host, port, timeout=timeout, context=ssl.create_default_context())
    return http.client.HTTPConnection(host, port, timeout=timeout)


def _cut(connection: http.client.HTTPConnection) -> None:
    with suppress(OSError, AttributeError):
        connection.sock.shutdown(2)


def _check_status(status: int, retry_after: str, where: str) -> None:
    if 200 <= status < 300:
        return
    if 300 <= status < 400:
        raise DeliveryRejected(f"{where} answered {status}: redirects are not followed. Correct the address")
    if 400 <= status < 500 and status not in RETRIED_STATUSES:
        raise DeliveryRejected(f"{where} answered {status}: the request was rejected. Check the address and the secret")
    raise DeliveryDeferred(f"{where} answered {status}", seconds=seconds_of(retry_after, datetime.now(UTC)))


def seconds_of(retry_after: str, now: datetime) -> float | None:
    """Parses a number of seconds or a date; returns None for neither."""
    text = retry_after.strip()
    if text.isdecimal():
        return min(float(text), MAX_RETRY_AFTER)
    with suppress(ValueError, TypeError):
        moment = parsedate_to_datetime(text)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return min(max(0.0, (moment - now).total_seconds()), MAX_RETRY_AFTER)
    return None


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or type(error).__name__
