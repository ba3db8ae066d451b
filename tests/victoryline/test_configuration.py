"""The configuration: environment first, then the YAML file, then the default; every problem named at once."""

import re
from pathlib import Path

import pytest

from scripts import config_docs
from victoryline.configuration import PROJECT_ROOT, Config, ConfigError, load

APPS = ("victoryline", "scraping", "monitoring", "apiauth")
SEED_DEFAULTS = {
    "scraper_max_lifetime_hours": 6,
    "memory_soft_limit_mb": 1536,
    "memory_hard_limit_mb": 2048,
    "polling_interval_seconds": 2.5,
    "staleness_threshold_seconds": 300,
    "max_queue_size": 1000,
    "max_queue_size_mb": 10,
    "circuit_breaker_threshold": 5,
    "circuit_breaker_timeout_seconds": 60,
    "circuit_breaker_success_threshold": 5,
    "retry_max_attempts": 5,
    "retry_base_delay_seconds": 1,
    "retry_max_delay_seconds": 16,
    "page_timeout_seconds": 30,
    "navigation_timeout_seconds": 30,
    "selector_timeout_seconds": 5,
    "browser_headless": True,
    "db_connection_pool_size": 10,
    "db_connection_timeout_seconds": 30,
    "enable_prometheus_metrics": True,
    "prometheus_port": 9090,
    "health_check_enabled": True,
    "log_level": "INFO",
    "enable_adaptive_polling": True,
    "enable_adaptive_timeouts": True,
    "enable_match_state_detection": True,
}
SEED_FILE = """
scraper:
  lifecycle: {max_lifetime_hours: 5, polling_interval: 3.5, staleness_threshold: 200}
  resources:
    memory: {soft_limit_mb: 1000, hard_limit_mb: 1200}
    queue: {max_size: 500, max_size_mb: 5}
  resilience:
    circuit_breaker: {threshold: 4, timeout: 30, success_threshold: 3}
    retry: {max_attempts: 4, base_delay: 2, max_delay: 8}
  browser:
    timeouts: {page: 20, navigation: 21, selector: 4}
    headless: false
  monitoring:
    prometheus: {enabled: false, port: 9191}
    health_check: {enabled: false}
    logging: {level: ERROR, structured: false}
"""


@pytest.fixture
def written(tmp_path: Path):
    def write(text: str) -> Path:
        path = tmp_path / "config.yaml"
        path.write_text(text)
        return path

    return write


def problems(environ: dict[str, str], path: Path | None = None) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(environ, path)
    return caught.value.problems


@pytest.mark.requirement("DM-8", "NFR-021")
class TestEnvironment:
    @pytest.mark.parametrize(("name", "default"), SEED_DEFAULTS.items())
    def test_has_the_agreed_default(self, name, default):
        value = getattr(load({}), name)
        assert (value, type(value)) == (default, type(default))

    def test_reads_typed_values(self):
        config = load({"POLLING_INTERVAL_SECONDS": "4", "BROWSER_HEADLESS": "no", "PORT": "8080", "LOG_LEVEL": "warn"})
        assert config.polling_interval_seconds == 4.0
        assert isinstance(config.polling_interval_seconds, float)
        assert (config.browser_headless, config.port, config.log_level) == (False, 8080, "WARN")

    def test_names_variable_value_origin_and_range(self):
        (problem,) = problems({"PORT": "99999"})
        assert problem == 'PORT is "99999" (environment); allowed: a whole number from 1 to 65535'

    @pytest.mark.parametrize("text", ["nan", "inf", "two", "1e9", "-1", "0x10"])
    def test_refuses_numbers_that_are_none_or_out_of_range(self, text):
        assert problems({"POLLING_INTERVAL_SECONDS": text})

    def test_reports_all_problems_at_once(self):
        found = problems({"PORT": "x", "HTTPS": "perhaps", "LOG_LEVEL": "LOUD", "WORKER_THREADS": "65"})
        assert [each.split()[0] for each in found] == ["LOG_LEVEL", "PORT", "HTTPS", "WORKER_THREADS"]

    def test_takes_empty_as_not_set(self):
        assert load({"PORT": "", "STADIUM_URL": " "}) == load({})

    def test_ignores_unknown_and_removed_variables(self):
        assert load({"PORTS": "x", "HOME": "/", "DB_POOL_MAX": "9", "HEARTBEAT_SECONDS": "x", "SMTP_URL": "x"}) == load(
            {}
        )

    def test_relative_paths_start_at_the_project(self):
        assert load({"VAR_DIR": "elsewhere"}).var_dir == PROJECT_ROOT / "elsewhere"

    @pytest.mark.parametrize("text", ["http://a:99999", "http://a:0", "http://a:no", "http://"])
    def test_refuses_a_url_with_an_invalid_port(self, text):
        (problem,) = problems({"ALERT_WEBHOOK_URL": text})
        assert problem.startswith("ALERT_WEBHOOK_URL is")

    @pytest.mark.requirement("FS-5")
    def test_never_prints_a_secret(self):
        (problem,) = problems({"DATABASE_URL": "mysql://someone:hunter2@db/x"})
        assert "hunter2" not in problem
        assert "***" in problem

    @pytest.mark.requirement("FS-5")
    def test_shows_no_secret_in_its_representation(self):
        assert "hunter2" not in repr(load({"SECRET_KEY": "hunter2", "IPROYAL_PASSWORD": "hunter2"}))

    def test_reports_contradictions_together_with_wrong_values(self):
        assert len(problems({"PORT": "x", "MEMORY_SOFT_LIMIT_MB": "2048"})) == 2


@pytest.mark.requirement("DM-8")
class TestContradictions:
    @pytest.mark.parametrize(
        ("environ", "named"),
        [
            ({"MEMORY_SOFT_LIMIT_MB": "2048"}, "MEMORY_SOFT_LIMIT_MB is 2048 and MEMORY_HARD_LIMIT_MB is 2048"),
            ({"RETRY_BASE_DELAY_SECONDS": "17"}, "RETRY_BASE_DELAY_SECONDS is 17 and RETRY_MAX_DELAY_SECONDS is 16"),
            ({"POLLING_INTERVAL_SECONDS": "300"}, "POLLING_INTERVAL_SECONDS is 300 and STALENESS_THRESHOLD_SECONDS is"),
            ({"PORT": "9090"}, "PORT and PROMETHEUS_PORT are both 9090"),
            ({"SOURCE_CREDENTIALS": "crexpro=a hunter2"}, "SOURCE_CREDENTIALS: entry 2 is not source=secret"),
            ({"DATABASE_URL": "postgres://db/x", "JWT_SIGNING_KEY": "k"}, "SECRET_KEY is empty"),
        ],
    )
    def test_are_found(self, environ, named):
        (problem,) = problems(environ)
        assert named in problem


@pytest.mark.requirement("DM-9")
class TestFile:
    def test_every_agreed_key_is_read(self, written):
        config = load({}, written(SEED_FILE))
        changed = {name for name in Config.model_fields if getattr(config, name) != getattr(load({}), name)}
        assert len(changed) == 22
        assert (config.polling_interval_seconds, config.prometheus_port) == (3.5, 9191)
        assert (config.log_level, config.log_format, config.browser_headless) == ("ERROR", "console", False)

    def test_environment_goes_first(self, written):
        assert load({"PORT": "8001"}, written("web: {port: 8002}")).port == 8001

    def test_is_named_by_config_file(self, written):
        assert load({"CONFIG_FILE": str(written("web: {port: 8002}"))}).port == 8002

    def test_a_wrong_value_names_file_and_place(self, written):
        (problem,) = problems({}, written("web: {port: [1, 2]}"))
        assert problem.startswith('PORT is "1,2" (config.yaml, web.port); allowed:')

    def test_suggests_what_an_unknown_key_may_have_meant(self, written):
        (problem,) = problems({}, written("scraper: {lifecycle: {poling_interval: 2}}"))
        assert problem.endswith("is not a known key; did you mean scraper.lifecycle.polling_interval?")

    def test_refuses_a_key_that_is_none(self, written):
        (problem,) = problems({}, written("alerts: {hourly_limit: 9}"))
        assert problem.startswith("alerts.hourly_limit (config.yaml) is not a known key")

    @pytest.mark.requirement("FS-5")
    def test_refuses_secrets_without_showing_them(self, written):
        (problem,) = problems({}, written("web: {secret_key: hunter2}"))
        assert "set SECRET_KEY in the environment" in problem
        assert "hunter2" not in problem

    @pytest.mark.parametrize("text", ["- a\n- b", "a: [", "web: 5", "web: {port: {a: 1}}", "just words"])
    def test_refuses_what_is_no_configuration(self, written, text):
        assert problems({}, written(text))

    def test_an_empty_file_changes_nothing(self, written):
        assert load({}, written("")) == load({}, written("scraper:\n")) == load({})

    def test_a_missing_file_is_a_problem(self, tmp_path):
        assert "can't be read" in problems({}, tmp_path / "none.yaml")[0]


class TestDocuments:
    def test_the_table_is_in_step(self):
        assert config_docs.DOCUMENT.read_text() == config_docs.document(), "run make config-docs"

    def test_the_example_is_in_step_and_holds_the_defaults(self):
        assert config_docs.EXAMPLE.read_text() == config_docs.example(), "run make config-docs"
        assert load({}, config_docs.EXAMPLE) == load({})

    def test_only_the_settings_read_the_environment(self):
        """Other modules may pass the whole environment to child processes, or write into it for them."""
        reads = re.compile(r"os\.getenv|os\.environ\.get\(|os\.environ\[[^]]+\](?! = )|in os\.environ")
        files = [file for package in APPS for file in (PROJECT_ROOT / package).rglob("*.py")]
        assert [str(file) for file in files if reads.search(file.read_text())] == []
