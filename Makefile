.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := /bin/bash

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest
# Tests start hundreds of processes, each of which would compile the package again.
unexport PYTHONDONTWRITEBYTECODE
# As many workers as processors, one more with slow tests, four at most; WORKERS=0 is one process.
WORKERS ?= auto
# Further options of pytest: `.ci/run` leaves out what passed in `make test`.
TESTS ?=
PARALLEL := -n $(WORKERS) --maxprocesses 4 --dist worksteal --durations 30

# Debian packages that a test or an extra needs; installed by `install-ci` when it runs as root.
SYSTEM_PACKAGES := chromium chromium-driver default-jre-headless postgresql redis-server strace wordnet-base

# A stamp tells which extras the environment has, so that targets share one environment and pip
# runs again only when the declarations change. A larger set refreshes the stamps it contains.
CORE := $(VENV)/.installed-core
DEV := $(VENV)/.installed-dev
SCHEDULER := $(VENV)/.installed-airflow
CI := $(VENV)/.installed-ci
DECLARED := pyproject.toml constraints.txt

.PHONY: help install install-core install-ci airflow demo demo-llm test test-slow test-all check check-code \
	check-format lint types layers check-docs format docs site versions golden bench fuzz soak guards constraints clean

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  \033[36m%-13s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(DEV)  ## Make .venv with the package, its dependencies and the development tools
install-core: $(CORE)  ## Make .venv with the package and the dependencies of builds
install-ci: $(CI)  ## Make .venv with all extras; as root also the system packages they need

airflow: $(SCHEDULER)  ## Start Airflow with the demo corpus, without Docker; prints address and login
	@$(BIN)/python examples/demo/demo_airflow.py

demo: $(CORE)  ## Build a small pyramid and ask it questions, without a key or a network
	$(BIN)/python examples/demo/demo.py

demo-llm: $(CORE)  ## Build it from recorded replies of a language model, also without a key
	$(BIN)/python examples/demo/demo_llm.py

test: $(DEV)  ## Run the fast tests; a test that needs an extra is skipped without it
	$(PYTEST) $(PARALLEL) $(TESTS) -m "not slow"

test-slow: $(DEV)  ## Run the slow tests: wheel, Airflow, whole builds
	$(PYTEST) $(PARALLEL) -m slow

test-all: $(DEV)  ## Run the fast and the slow tests
	$(PYTEST) $(PARALLEL) $(TESTS)

check: check-code test  ## Run all checks of CI, except the slow tests

check-code: check-format lint types check-docs  ## Run the checks of CI other than tests

check-format: $(DEV)  ## Fail if a file is not formatted
	$(BIN)/ruff format --check .

lint: $(DEV)  ## Fail on lint findings
	$(BIN)/ruff check .

types: $(DEV)  ## Fail on type errors (mypy strict)
	$(BIN)/mypy

layers: $(DEV)  ## Fail if a module imports from a layer above it
	$(PYTEST) -q tests/test_layers.py

check-docs: $(DEV)  ## Fail if the generated docs are stale
	$(BIN)/python docs/generate.py --check

format: $(DEV)  ## Format the code and fix what lint can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(DEV)  ## Generate the reference pages of docs/
	$(BIN)/python docs/generate.py

site: $(DEV)  ## Make a static site of the manual in build/site, offline
	$(BIN)/sphinx-build -q -W -b html -c docs . build/site && cp build/site/README.html build/site/index.html

versions: $(DEV)  ## Record the code that each stage's version stands for
	PYTHONPATH=. $(BIN)/python tests/stage_versions.py

golden: $(DEV)  ## Record the extractor's output for the golden examples; review the diff
	PYTHONPATH=. $(BIN)/python tests/golden/record.py

bench: $(DEV)  ## Run the measurements of benchmarks/; without KPYRAMID_BENCH only those of the demo
	@set -e; for script in $(filter-out $(addprefix benchmarks/,choice_pyramids.py completion_pyramids.py embedding.py flips.py guards.py make_questions.py options.py peers.py soak.py synthetic.py),$(wildcard benchmarks/*.py)); do \
		if [ -z "$$KPYRAMID_BENCH" ] && grep -q folder=FOLDER "$$script"; then \
			echo "== $$script: skipped, set KPYRAMID_BENCH to the folder with its data" >&2; continue; \
		fi; \
		echo "== $$script"; $(BIN)/python "$$script"; \
	done

fuzz: $(DEV)  ## Fuzz all readers of external input, guided by coverage; SECONDS=600 a target
	@$(BIN)/python -m pip install -qq 'atheris>=3.0'
	@for target in $$(PYTHONPATH=. $(BIN)/python tests/fuzz.py --names); do \
		echo "== $$target"; PYTHONPATH=. $(BIN)/python tests/fuzz.py $$target \
			-max_total_time=$(or $(SECONDS),600) -print_final_stats=1 || exit 1; \
	done

soak: $(DEV)  ## Run 200 nights of edits, labels, erasure, kills and a full disk; NIGHTS=60 for fewer
	$(BIN)/python benchmarks/soak.py --limit $(or $(NIGHTS),200)

guards: $(DEV)  ## Measure the guarded figures that take minutes, report which got worse; needs KPYRAMID_BENCH
	$(BIN)/python benchmarks/guards.py

constraints: pyproject.toml  ## Resolve all extras anew and pin them in constraints.txt
	@echo "Resolving all extras in a fresh environment, about 3 minutes ..."
	@set -e -o pipefail; folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; \
		$(PYTHON) -m venv "$$folder/venv"; \
		"$$folder/venv/bin/python" -m pip -qq install '.[build,celery,dev,files,instructor,integrations,s3,serve,tune]'; \
		{ echo "# Every distribution that core and all extras resolve to on Python 3.11."; \
		  echo "# Made by \`make constraints\`; do not edit."; \
		  "$$folder/venv/bin/python" -m pip freeze --exclude kpyramid \
			| sed -E 's/^([^=]+==[^+]+)\+[a-z0-9.]+$$/\1/' | LC_ALL=C sort -f; } > "$$folder/pins"; \
		if grep -nE '@|://|^-' "$$folder/pins"; then echo "a pin names a place" >&2; exit 1; fi; \
		cp "$$folder/pins" constraints.txt

clean:  ## Remove the environment and all files of tools; warehouse/data stays
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "no python3.11 on PATH; install it or set PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' \
		|| { echo "$(PYTHON) is not Python 3.11; set PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(CORE): $(DECLARED) | $(BIN)/python
	@echo "Installing the package and its dependencies (850 MB) into $(VENV), about 2 minutes ..."
	@.ci/install $(BIN) '.[build]'
	@touch $(CORE)

$(DEV): $(DECLARED) | $(BIN)/python
	@echo "Installing the package and the development tools (900 MB) into $(VENV), about 2 minutes ..."
	@.ci/install $(BIN) '.[build,dev]'
	@touch $(CORE) $(DEV)

$(SCHEDULER): $(DECLARED) | $(BIN)/python
	@echo "Installing the package and Airflow (1.2 GB) into $(VENV), about 3 minutes ..."
	@.ci/install $(BIN) '.[airflow]'
	@touch $(CORE) $(SCHEDULER)

$(CI): $(DECLARED) | $(BIN)/python
	@if [ -n "$(SYSTEM_PACKAGES)" ] && [ "$$(id -u)" = 0 ]; then \
		echo "Installing system packages: $(SYSTEM_PACKAGES) ..."; \
		{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
			apt-get install -y -qq --no-install-recommends $(SYSTEM_PACKAGES); } >/dev/null \
			|| echo "They could not be installed; tests that need them will say so." >&2; \
	fi
	@echo "Installing the package and all extras (2.4 GB) into $(VENV), about 5 minutes ..."
	@.ci/install $(BIN) '.[build,celery,dev,files,instructor,integrations,s3,serve,tune]'
	@touch $(CORE) $(SCHEDULER) $(DEV) $(CI)
