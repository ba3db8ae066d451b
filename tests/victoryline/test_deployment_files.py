"""Dockerfile and docker-compose.yml, checked as files without a Docker engine."""

import json
import re

import pytest
import yaml

from victoryline import embedded
from victoryline.configuration import PROJECT_ROOT, Config, load
from victoryline.configuration.fields import is_secret

DOCKERFILE = (PROJECT_ROOT / "Dockerfile").read_text()
COMPOSE_TEXT = (PROJECT_ROOT / "docker-compose.yml").read_text()
COMPOSE = yaml.safe_load(COMPOSE_TEXT)
SERVICES = COMPOSE["services"]
OURS = ("web", "scheduler", "worker")
ONLY_FOR_COMPOSE = {"POSTGRES_PASSWORD"}
VARIABLES = {name.upper() for name in Config.model_fields}


class TestDockerfile:
    def test_runs_as_an_unprivileged_user(self):
        users = re.findall(r"^USER (\S+)", DOCKERFILE, re.MULTILINE)
        assert users
        assert users[-1] not in {"root", "0"}
        assert DOCKERFILE.index("USER ") < DOCKERFILE.index("ENTRYPOINT")

    def test_has_an_init_process(self):
        assert re.search(r'^ENTRYPOINT \["tini"', DOCKERFILE, re.MULTILINE)

    def test_installs_pinned_packages_and_chromium(self):
        assert "-c constraints.txt" in DOCKERFILE
        assert re.search(r"apt-get install .*chromium", DOCKERFILE)

    def test_checks_its_health_and_collects_static_files(self):
        assert "HEALTHCHECK" in DOCKERFILE
        assert "collectstatic" in DOCKERFILE

    def test_serves_with_the_options_of_make_run(self):
        command = json.loads(re.search(r"^CMD (.*)$", DOCKERFILE, re.MULTILINE)[1])
        ours = embedded.web_command(load({}))
        for option in ("--interface", "--blocking-threads", "--workers-kill-timeout"):
            assert command[command.index(option) + 1] == ours[ours.index(option) + 1], option

    def test_sets_no_secret(self):
        secrets = [name.upper() for name, field in Config.model_fields.items() if is_secret(field)]
        assert not [name for name in secrets if re.search(rf"\b{name}=", DOCKERFILE)]

    def test_its_environment_is_valid(self):
        given = dict(re.findall(r"\b([A-Z_]+)=(\S+)", DOCKERFILE))
        config = load({name: value for name, value in given.items() if name in VARIABLES})
        assert str(config.var_dir) == given["VAR_DIR"]


class TestCompose:
    @pytest.mark.parametrize("name", [*OURS, "postgres", "redis"])
    def test_every_service_restarts_is_limited_and_checked(self, name):
        service = SERVICES[name]
        assert service["restart"] == "unless-stopped"
        assert {"cpus", "memory"} <= set(service["deploy"]["resources"]["limits"])
        assert name == "web" or service["healthcheck"]["test"]  # the web's is the Dockerfile's own

    @pytest.mark.parametrize("name", OURS)
    def test_our_services_wait_for_setup_and_servers(self, name):
        conditions = {other: how["condition"] for other, how in SERVICES[name]["depends_on"].items()}
        assert conditions == {
            "setup": "service_completed_successfully",
            "postgres": "service_healthy",
            "redis": "service_healthy",
        }

    @pytest.mark.parametrize("name", [*OURS, "setup"])
    def test_every_variable_is_in_the_table(self, name):
        assert set(SERVICES[name]["environment"]) <= VARIABLES

    def test_every_variable_it_asks_for_is_in_the_table(self):
        asked = set(re.findall(r"\$\{([A-Z_]+)", COMPOSE_TEXT)) - ONLY_FOR_COMPOSE
        assert asked <= VARIABLES

    @pytest.mark.requirement("FS-5")
    def test_secrets_come_from_outside_and_are_required(self):
        for name in ("SECRET_KEY", "JWT_SIGNING_KEY"):
            assert SERVICES["web"]["environment"][name].startswith("${" + name + ":?")
        assert SERVICES["postgres"]["environment"]["POSTGRES_PASSWORD"].startswith("${POSTGRES_PASSWORD:?")

    def test_its_environment_is_valid(self):
        environment = dict(SERVICES["worker"]["environment"])
        filled = {name: re.sub(r"\$\{[A-Z_]+:[?-]([^}]*)\}", r"\1", value) for name, value in environment.items()}
        config = load(filled)
        assert {config.database_url.partition(":")[0], config.redis_url.partition(":")[0]} == {"postgres", "redis"}

    def test_a_worker_guards_its_memory_before_the_kernel_does(self):
        limit = int(SERVICES["worker"]["deploy"]["resources"]["limits"]["memory"].removesuffix("M"))
        assert limit > load({}).memory_hard_limit_mb

    @pytest.mark.requirement("EC-1", "EC-3", "FR-019")
    def test_stored_files_are_in_one_folder_for_all(self):
        """Evidence is written by workers, match logs by the scheduler; the web process shows both."""
        given = dict(re.findall(r"\b([A-Z_]+)=(\S+)", DOCKERFILE))
        volumes = set()
        for name in (*OURS, "setup"):
            environment = SERVICES[name]["environment"]
            chosen = {"STORAGE_DIR": environment["STORAGE_DIR"]} if "STORAGE_DIR" in environment else {}
            config = load({"VAR_DIR": given["VAR_DIR"], **chosen})
            folder = str(config.storage_dir or config.var_dir / "storage")
            mounted = dict(reversed(volume.split(":")[:2]) for volume in SERVICES[name]["volumes"])
            assert folder in mounted, f"{name} keeps {folder} for itself"
            volumes.add(mounted[folder])
        assert len(volumes) == 1
        assert volumes <= set(COMPOSE["volumes"]), "it is a volume, which all containers share, and no folder of one"
        assert re.search(r"mkdir -p /data/storage\b", DOCKERFILE)
        assert re.search(r"chown -R victoryline:victoryline /data$", DOCKERFILE, re.MULTILINE)

    def test_the_spool_outlives_its_container(self):
        """A new volume gets its owner from the image."""
        assert "spool:/data/spool" in SERVICES["worker"]["volumes"]
        assert "spool" in COMPOSE["volumes"]
        assert re.search(r"mkdir -p .*/data/spool\b", DOCKERFILE)

    def test_redis_is_bounded(self):
        assert "--maxmemory" in SERVICES["redis"]["command"]

    def test_worker_and_scheduler_are_other_processes_than_the_web(self):
        assert "run_worker" in SERVICES["worker"]["command"]
        assert "run_scheduler" in SERVICES["scheduler"]["command"]
