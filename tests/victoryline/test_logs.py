"""Log lines: one JSON object each, with the context that was bound, and without secrets."""

import ast
import json
import logging
import logging.config
import re
import threading

import pytest
from structlog.contextvars import bound_contextvars

from victoryline.configuration import PROJECT_ROOT
from victoryline.lib import logs
from victoryline.lib.redaction import clean, redact

SECRET = "hunter2hunter2"
MATCH_NUMBER = r"\bmatch_id\b(?!['\)])|\b(match|keep|gone)\.(pk|id)\b"  # as an argument of a message


@pytest.fixture
def written():
    """Formats records as the JSON handler would."""
    logs.set_process(service="tests")
    formatter = logs.formatter("json")
    lines: list[dict[str, object]] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(json.loads(formatter.format(record)))

    logger, handler = logging.getLogger("victoryline.test"), Handler()
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield logger, lines
    logger.removeHandler(handler)


@pytest.mark.requirement("NFR-019", "FR-014")
class TestLine:
    def test_has_time_level_logger_event_and_action_first(self, written):
        logger, lines = written
        logger.warning("Task %s failed", 7, extra={"action": "task_failed"})
        assert list(lines[0])[:6] == ["ts", "level", "service", "logger", "event", "action"]
        assert (lines[0]["level"], lines[0]["event"], lines[0]["action"]) == ("WARN", "Task 7 failed", "task_failed")
        assert str(lines[0]["ts"]).endswith("Z")

    @pytest.mark.requirement("ZT-10")
    def test_carries_context_only_while_it_is_bound(self, written):
        logger, lines = written
        with bound_contextvars(job_id=1, match_id="m", attempt=2):
            logger.info("inside")
        logger.info("outside")
        assert (lines[0]["job_id"], lines[0]["match_id"], lines[0]["attempt"]) == (1, "m", 2)
        assert "job_id" not in lines[1]

    def test_binding_stays_in_its_thread(self, written):
        logger, lines = written
        with bound_contextvars(task_id=5):
            thread = threading.Thread(target=lambda: logger.info("elsewhere"))
            thread.start()
            thread.join()
        assert "task_id" not in lines[0]

    def test_an_error_explains_its_exception(self, written):
        logger, lines = written
        try:
            raise ValueError("no such over")
        except ValueError:
            logger.exception("Parsing failed")
        assert (lines[0]["exception_type"], lines[0]["error_message"]) == ("ValueError", "no such over")
        assert "test_logs.py" in str(lines[0]["stack_trace"])
        assert "error_type" not in lines[0]  # one of five words, which only the journal gives

    def test_a_value_json_does_not_know_is_no_reason_to_fail(self, written):
        logger, lines = written
        logger.info("odd", extra={"thing": object(), "number": {1: "one"}})
        assert str(lines[0]["thing"]).startswith("<object")


class TestMatchId:
    """`match_id` is the public key of a match on every line, never its number."""

    def test_no_line_gives_the_number(self):
        numbers = []
        for file in (*PROJECT_ROOT.glob("scraping/**/*.py"), *PROJECT_ROOT.glob("monitoring/**/*.py")):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Call) and re.match(r"logger\.[a-z]+$", ast.unparse(node.func)):
                    shown = [value for value in map(ast.unparse, node.args) if re.search(MATCH_NUMBER, value)]
                    numbers += [f"{file.relative_to(PROJECT_ROOT)}:{node.lineno} {value}" for value in shown]
                if isinstance(node, ast.Dict):
                    pairs = zip(node.keys, node.values, strict=True)
                    names = {key.value: value for key, value in pairs if isinstance(key, ast.Constant)}
                    shown = ast.unparse(names["match_id"]) if {"action", "match_id"} <= set(names) else "key"
                    if not re.search(r"\b(main_)?key\b|match_key\(|shown|line\.get", shown):
                        numbers.append(f"{file.relative_to(PROJECT_ROOT)}:{node.lineno} {shown}")
        assert numbers == []


def test_error_type_is_never_the_name_of_a_class():
    files = [
        file
        for app in ("scraping", "monitoring", "apiauth", "victoryline")
        for file in PROJECT_ROOT.glob(f"{app}/**/*.py")
    ]
    assert [file.name for file in files if re.search(r'"error_type"[:,].*__name__', file.read_text())] == []


@pytest.mark.requirement("FS-5")
class TestSecrets:
    @pytest.mark.parametrize(
        "name",
        ["authorization", "Cookie", "set-cookie", "api_key", "X-Api-Key", "password", "access_token", "SENTRY_DSN"],
    )
    def test_are_hidden_by_name(self, name):
        assert redact(name, SECRET) == "***"
        assert SECRET not in str(redact("request", {"headers": [{name: SECRET}]}))

    @pytest.mark.parametrize(
        "text",
        [
            f"GET http://user:{SECRET}@proxy.example:12321/path",
            f"Authorization: Bearer {SECRET}",
            f"https://site.example/a?b=1&token={SECRET}&c=2",
            f'{{"api_key": "{SECRET}"}}',
            f"password={SECRET}",
            f"Cookie: session={SECRET}; other=1",
            f"eyJhbGciOiJIUzI1NiJ9.{SECRET}.{SECRET}",
        ],
    )
    def test_are_hidden_by_their_form(self, text):
        assert SECRET not in clean(text)

    def test_the_text_around_them_stays(self):
        assert clean(f"GET http://u:{SECRET}@proxy:1/x failed") == "GET http://***:***@proxy:1/x failed"

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("token_lifetime_hours", 24),
            ("api_key_prefix", "ab12"),
            ("url", "http://127.0.0.1:80/a@b"),
            ("event", "over 12.3"),
        ],
    )
    def test_harmless_names_are_shown(self, name, value):
        assert redact(name, value) == value

    def test_do_not_get_into_a_line(self, written):
        logger, lines = written
        try:
            raise ValueError(f"proxy http://u:{SECRET}@p:1 refused")
        except ValueError:
            logger.exception("Failed with password=%s", SECRET, extra={"headers": {"Authorization": SECRET}})
        assert SECRET not in json.dumps(lines)

    def test_do_not_get_into_a_traceback_for_people(self):
        """Neither in the message nor as a local variable."""

        def check(given: str) -> None:
            raise ValueError(f"proxy http://u:{given}@p:1 refused")

        with pytest.raises(ValueError, match="proxy") as raised:
            check(SECRET)
        record = logging.makeLogRecord({"msg": "Failed", "exc_info": raised._excinfo})
        shown = logs.formatter("console").format(record)  # outside of any `except`, as a late report is
        assert "ValueError: proxy http://***:***@p:1 refused" in shown
        assert "in check" in shown
        assert SECRET not in shown
