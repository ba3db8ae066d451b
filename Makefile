# The commands of the project. `make` without a target lists them.
# Recipes that stay running use exec, so that a signal sent to the shell make started reaches the program itself.

SHELL := /bin/sh
PYTHON3 := $(shell command -v python3.11 || command -v python3)
PY := .venv/bin/python
export PORT
ifdef PACE
export STADIUM_PACE := $(PACE)
endif

.DEFAULT_GOAL := help
.PHONY: help run test faults lint format bench requirements migrations-check deploy-check config-docs schema fuzz doctor screenshots clean

help: ## List the targets
	@echo "VictoryLine. First time here? Type: make run"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: .bootstrap-run ## Start everything: web, engine, simulated sources (PORT=8000 PACE=10)
	@exec $(PY) manage.py run --with-parent

test: .bootstrap-test ## Run all tests with private PostgreSQL and Redis (ONLY=fast|scaled|slow|alone ARGS="-k name")
	@exec $(PY) scripts/test.py $(if $(ONLY),--only $(ONLY)) -- $(ARGS)

faults: .bootstrap-test ## Inject faults into whole systems and measure their recovery, about half an hour (FAULT=6)
	@exec $(PY) scripts/faults.py $(if $(FAULT),--fault $(FAULT)) -- $(ARGS)

lint: .bootstrap-dev ## Check style, types, layers, migrations and deployment settings
	@exec $(PY) scripts/lint.py

format: .bootstrap-dev ## Format the code
	@.venv/bin/ruff check --fix-only --quiet . && .venv/bin/ruff format .

bench: .bootstrap-test ## Run a benchmark (BENCH=polls); without BENCH: list them
	@exec $(PY) -m benchmarks $(BENCH) $(ARGS)

requirements: .bootstrap-dev ## Show which tests prove which requirement, and their last result
	@exec $(PY) scripts/requirements.py

migrations-check: .bootstrap-dev ## Fail when a model has changed without its migration
	@exec $(PY) manage.py makemigrations --check --dry-run

config-docs: .bootstrap-dev ## Write docs/configuration.md and the example file from victoryline/configuration/
	@exec $(PY) scripts/config_docs.py

schema: .bootstrap-dev ## Write docs/openapi.json, the schema of the API, and list the changes
	@exec $(PY) scripts/schema.py

fuzz: .bootstrap-test ## Run all checks of schemathesis against a running API (SEED=7 SECONDS=300)
	@exec $(PY) scripts/fuzz.py $(if $(SEED),--seed $(SEED)) $(if $(SECONDS),--seconds $(SECONDS)) -- $(ARGS)

doctor: .bootstrap-run ## Check Python, Chromium, database, broker, memory and ports, with a remedy for each problem
	@exec $(PY) manage.py doctor

screenshots: .bootstrap-run ## Take the README's pictures from a running system
	@exec $(PY) -m scripts.screenshots

clean: ## Remove caches and test results; data in var/ and the environment stay
	@rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache var/test-results staticfiles
	@find . -name __pycache__ -not -path './.venv/*' -type d -prune -exec rm -rf {} +

.PHONY: .bootstrap-run .bootstrap-dev .bootstrap-test
.bootstrap-run .bootstrap-dev .bootstrap-test:
	@test -n "$(PYTHON3)" || { echo "Python 3.11 is needed. On Debian: apt-get install python3 python3-venv"; exit 1; }
	@$(PYTHON3) scripts/bootstrap.py --for $(patsubst .bootstrap-%,%,$@)
