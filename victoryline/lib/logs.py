"""Structured logging: one line per event, with an action and the job, task, match and attempt it belongs to.

Code logs with the standard library: `logger.info("Task claimed", extra={"action": "task_claimed"})`. Context of
`structlog.contextvars` is on every line of that thread or coroutine, context of `set_process(...)` on every line of the
process. Lines are JSON, or text for a terminal. Secrets are removed: see `redaction`.
"""

import logging
import traceback
import uuid
from typing import Any

import orjson
import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from victoryline.lib.redaction import redact

FIRST_KEYS = ("ts", "level", "service", "logger", "event", "action", "match_id")
MANY_LINES = ("exception", "stack", "stack_trace")
_process: dict[str, Any] = {}


def set_process(**context: Any) -> None:
    """Adds `service`, `worker` etc. to every line of this process, in all threads."""
    _process.update(context)


def logging_config(*, level: str, format: str, service: str) -> dict[str, Any]:
    """Returns the value of Django's LOGGING."""
    set_process(service=service, run_id=str(uuid.uuid4()))
    quiet = {"handlers": [], "level": "INFO", "propagate": True}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "filters": {
            "once": {"()": "victoryline.lib.logs.WithoutDuplicates"},
            "unknown_hosts": {"()": "victoryline.lib.logs.UnknownHosts"},
        },
        "formatters": {"line": {"()": "victoryline.lib.logs.formatter", "format": format}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "stream": "ext://sys.stderr", "formatter": "line"}},
        "root": {"handlers": ["stderr"], "level": level},
        # Django configures handlers for these; here all lines go through the root handler.
        "loggers": {
            "django": quiet,
            "django.server": quiet,
            "django.request": {"filters": ["once"], "propagate": True},
            "django.security.DisallowedHost": {"filters": ["unknown_hosts"], "propagate": True},
            "dramatiq": quiet,
            "asyncio": {**quiet, "level": "WARNING"},
            "axes": {**quiet, "level": "WARNING"},  # below that it describes its own steps
        },
    }


class WithoutDuplicates(logging.Filter):
    """Drops Django's lines about 4xx and 5xx, except tracebacks: victoryline.requests logs each of them."""

    def filter(self, record: logging.LogRecord) -> bool:
        return bool(record.exc_info) or not hasattr(record, "status_code")


class UnknownHosts(logging.Filter):
    """Turns errors about unknown Host headers, sent by network scanners, into INFO lines without a traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.levelno, record.levelname, record.exc_info = logging.INFO, "INFO", None
        return True


def formatter(format: str) -> logging.Formatter:
    ending: list[Processor] = [structlog.stdlib.ProcessorFormatter.remove_processors_meta]
    if format == "json":
        ending += [_explain_exception, _redact, _order, structlog.processors.JSONRenderer(serializer=_dumps)]
    else:
        # structlog's own tracebacks would show local variables, keys and tokens included, without redaction.
        console = structlog.dev.ConsoleRenderer(
            colors=False, event_key="event", timestamp_key="ts", exception_formatter=structlog.dev.plain_traceback
        )
        ending += [_write_out_exception, _redact, _on_one_line, console]
    beginning: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        _add_process,
        structlog.stdlib.add_logger_name,
        _add_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="ts"),
        structlog.stdlib.ExtraAdder(),
        _drop_request,
    ]
    return structlog.stdlib.ProcessorFormatter(foreign_pre_chain=beginning, processors=ending)


def _drop_request(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Removes the request object that Django adds; a line could only show `<WSGIRequest ...>`."""
    if not isinstance(event.get("request"), str | None):
        del event["request"]
    return event


def _add_process(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    for key, value in _process.items():
        event.setdefault(key, value)
    return event


def _add_level(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    name = event["_record"].levelname
    event["level"] = "WARN" if name == "WARNING" else name
    return event


def _taken_exception(event: EventDict) -> BaseException | None:
    """Removes the exception from the event and returns it."""
    info = event.pop("exc_info", None)
    return info[1] if isinstance(info, tuple) else None


def _write_out_exception(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Turns the exception into text, so that it is redacted like any other text."""
    error = _taken_exception(event)
    if error is not None:
        event["exception"] = "".join(traceback.format_exception(error)).rstrip()
        event.update(_statement_of(error))
    return event


def _statement_of(error: BaseException) -> dict[str, str]:
    from victoryline.lib.statements import statement_of  # not at import time: Django's settings import this module

    return statement_of(error)


def _explain_exception(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    error = _taken_exception(event)
    if error is not None:
        event.setdefault("exception_type", type(error).__name__)  # `error_type` has five words
        event.setdefault("error_message", str(error))
        event.update(_statement_of(error))
        if event["level"] in {"ERROR", "CRITICAL"}:
            event.setdefault("stack_trace", "".join(traceback.format_exception(error)))
    return event


def _redact(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    return {key: redact(key, value) for key, value in event.items()}


def _on_one_line(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Escapes control characters: outside text must not start a line or colour the terminal. (JSON escapes them.)"""
    for name, value in event.items():
        if isinstance(value, str) and name not in MANY_LINES and not value.isprintable():
            event[name] = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in value)
    return event


def _order(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    first = {key: event.pop(key) for key in FIRST_KEYS if key in event}
    return {**first, **event}


def _dumps(event: EventDict, **_: Any) -> str:
    return orjson.dumps(event, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
