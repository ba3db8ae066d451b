"""One POST, bounded in every way: no redirects, no proxies, so many seconds in all."""

from __future__ import annotations

import http.client
import ssl
import threading
from collections.abc import Mapping
from contextlib import closing, suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from monitoring.alerts.channels.base import PutOff, Refused

TIMEOUT_SECONDS = 5.0
TOTAL_SECONDS = 10.0  # also for a server that answers one letter at a time
LONGEST_RETRY_AFTER = 3600.0
TRY_AGAIN = {408, 425, 429}


def post(url: str, body: bytes, headers: Mapping[str, str], *, timeout: float = TIMEOUT_SECONDS) -> int:
    """The status, when it is a good one. Nothing that is raised names more of the address than its host."""
    parts = urlsplit(url)
    where = parts.hostname or "?"
    connection = _connection(parts.scheme, where, parts.port, timeout)
    watch = threading.Timer(max(timeout, TOTAL_SECONDS), _cut, [connection])
    watch.daemon = True
    watch.start()
    try:
        path = parts.path or "/"
        connection.request("POST", f"{path}?{parts.query}" if parts.query else path, body, dict(headers))
        with closing(connection.getresponse()) as answer:
            status, retry_after = answer.status, answer.headers.get("Retry-After", "")
    except TimeoutError as error:
        raise PutOff(f"{where} did not answer within {timeout:g} s") from error
    except ssl.SSLCertVerificationError as error:
        raise PutOff(f"the certificate of {where} is not trusted: {error.verify_message}") from error
    except (OSError, http.client.HTTPException) as error:
        raise PutOff(f"{where} cannot be reached: {_reason(error)}") from error
    finally:
        watch.cancel()
        connection.close()
    _judge(status, retry_after, where)
    return status


def _connection(scheme: str, host: str, port: int | None, timeout: float) -> http.client.HTTPConnection:
    if scheme == "https":
        return http.client.HTTPSConnection(host, port, timeout=timeout, context=ssl.create_default_context())
    return http.client.HTTPConnection(host, port, timeout=timeout)


def _cut(connection: http.client.HTTPConnection) -> None:
    with suppress(OSError, AttributeError):
        connection.sock.shutdown(2)


def _judge(status: int, retry_after: str, where: str) -> None:
    if 200 <= status < 300:
        return
    if 300 <= status < 400:
        raise Refused(f"{where} answered {status}: it sends us elsewhere, and we follow nobody. Correct the address")
    if 400 <= status < 500 and status not in TRY_AGAIN:
        raise Refused(f"{where} answered {status}: it does not want this. Check the address and the secret")
    raise PutOff(f"{where} answered {status}", seconds=seconds_of(retry_after, datetime.now(UTC)))


def seconds_of(retry_after: str, now: datetime) -> float | None:
    """A number of seconds or a date; nothing when it is neither."""
    text = retry_after.strip()
    if text.isdecimal():
        return min(float(text), LONGEST_RETRY_AFTER)
    with suppress(ValueError, TypeError):
        moment = parsedate_to_datetime(text)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return min(max(0.0, (moment - now).total_seconds()), LONGEST_RETRY_AFTER)
    return None


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or type(error).__name__
