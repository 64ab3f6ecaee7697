# The law of this file: a clean clone, any Python >= 3.11, make and a package registry are enough.
# `make check` is the judge; CI calls it, and the checks beside it (.ci/run). Environments are made once and kept by stamps.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

# The type checker comes with its Node.js and is pinned by the lock: it need not ask for a newer one.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
# Hundreds of processes start here: what one has compiled is kept for the others, whatever the shell says.
export PYTHONDONTWRITEBYTECODE :=

# The first interpreter that is new enough; `make PYTHON=/path/to/python ...` overrules.
PYTHON ?= $(shell for p in python3.11 python3 python3.12 python3.13 python3.14; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$p" && break; done)

# uv from PATH, or one of our own beside the environments (a sync would remove it from inside one).
UV ?= $(shell command -v uv || echo .venv-uv/bin/uv)
UV_OWN := $(filter .venv-uv/bin/uv,$(UV))

SYNC := UV_PYTHON_DOWNLOADS=never UV_LINK_MODE=copy $(UV) sync --frozen --quiet --python "$$("$(PYTHON)" -c 'import sys; print(sys.executable)')"
BIN := .venv/bin
BIN1 := .venv-mcp1/bin

READY := .venv/.ready
READY1 := .venv-mcp1/.ready
READY_SDK := .venv-sdk/.ready
READY_BENCH := .venv-bench/.ready
READY_PEER := .venv-peer/.ready
READY_DOCS := .venv-docs/.ready

# Many tests wait for sockets and clocks, so four share two cores; `make WORKERS=0 test` is one process.
WORKERS ?= 4
PYTEST_ARGS ?=
SDK_TESTS ?=
SCENARIOS ?=
DOCS_ARGS ?=
CLIENTS ?=
COVERAGE := -m coverage run
PYTEST := -m pytest -q -n $(WORKERS) $(PYTEST_ARGS)

.PHONY: help check env versions lint law ledger types format test test-mcp1 examples coverage \
	wheel peer dist sdk-suite conformance check-clients compat floors pythons demo bench api docs \
	clean

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | awk -F '\t' '{ printf "  make %-12s %s\n", $$1, $$2 }'

check: ## the judge: rules, types, the tests on both majors of mcp, the built wheel
	@for part in lint law "types test-mcp1" coverage wheel; do \
		started=$$SECONDS; printf '== %s\n' "$$part"; \
		$(MAKE) --no-print-directory -j2 $$part; \
		printf '== %s: %ss\n' "$$part" "$$((SECONDS - started))"; \
	done; echo "== check: all good"

# ---- environments

env: $(READY) $(READY1) ## both environments, mcp 2.x and mcp 1.x

.venv-uv/bin/uv:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or later was not found; try make PYTHON=/path/to/python"; exit 1; }
	"$(PYTHON)" -m venv .venv-uv
	.venv-uv/bin/python -m pip install --quiet --disable-pip-version-check 'uv>=0.8'

$(READY): pyproject.toml uv.lock | $(UV_OWN)
	@test -n "$(PYTHON)" || { echo "Python 3.11 or later was not found; try make PYTHON=/path/to/python"; exit 1; }
	UV_PROJECT_ENVIRONMENT=.venv $(SYNC) --all-extras
	@touch $@

$(READY1): pyproject.toml uv.lock | $(UV_OWN)
	@test -n "$(PYTHON)" || { echo "Python 3.11 or later was not found; try make PYTHON=/path/to/python"; exit 1; }
	UV_PROJECT_ENVIRONMENT=.venv-mcp1 $(SYNC) --all-extras --no-default-groups --group test --group mcp1
	@touch $@

$(READY_SDK): pyproject.toml uv.lock | $(UV_OWN)
	@test -n "$(PYTHON)" || { echo "Python 3.11 or later was not found; try make PYTHON=/path/to/python"; exit 1; }
	UV_PROJECT_ENVIRONMENT=.venv-sdk $(SYNC) --no-default-groups --group mcp2 --group test --group sdk-suite
	@touch $@

$(READY_PEER): pyproject.toml uv.lock | $(UV_OWN)
	@test -n "$(PYTHON)" || { echo "Python 3.11 or later was not found; try make PYTHON=/path/to/python"; exit 1; }
	UV_PROJECT_ENVIRONMENT=.venv-peer $(SYNC) --no-default-groups --no-install-project --group agentcore-peer
	@touch $@

$(READY_BENCH): pyproject.toml uv.lock | $(UV_OWN)
	@test -n "$(PYTHON)" || { echo "Python 3.11 or later was not found; try make PYTHON=/path/to/python"; exit 1; }
	UV_PROJECT_ENVIRONMENT=.venv-bench $(SYNC) --all-extras --no-default-groups --group mcp2 --group bench
	@touch $@

$(READY_DOCS): pyproject.toml uv.lock | $(UV_OWN)
	@test -n "$(PYTHON)" || { echo "Python 3.11 or later was not found; try make PYTHON=/path/to/python"; exit 1; }
	UV_PROJECT_ENVIRONMENT=.venv-docs $(SYNC) --no-default-groups --group mcp2 --group docs
	@touch $@

versions: $(READY) $(READY1) | $(UV_OWN) ## what the checks run with
	@echo "uv      $$($(UV) --version)"
	@$(BIN)/python tools/versions.py
	@$(BIN1)/python tools/versions.py

# ---- checks

lint: $(READY) ## ruff, rules and layout
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet || { echo "make format would change the files named above"; exit 1; }

law: $(READY) ## imports point one way; the layout of the house
	@$(BIN)/python tools/import_law.py
	@$(BIN)/python tools/house_law.py

ledger: $(READY) ## promise each numbered rule that a test has come to name
	@$(BIN)/python tools/requirements_ledger.py --promise

types: $(READY) $(READY1) ## pyright, strict, against both majors of mcp
	@$(BIN)/pyright --warnings
	@$(BIN)/pyright --warnings -p tools/pyright_mcp1.json

format: $(READY) ## lay the code out and mend what can be mended
	@$(BIN)/ruff check --fix --quiet || true
	@$(BIN)/ruff format

test: $(READY) ## the tests with mcp 2.x (PYTEST_ARGS="-k word" narrows)
	@$(BIN)/python $(PYTEST)

test-mcp1: $(READY1) $(READY_PEER) ## the tests with mcp 1.x
	@$(BIN1)/python $(PYTEST)

examples: $(READY) ## the examples of the README and the docs, as printed
	@$(BIN)/python -m pytest -q tests/house/test_readme_examples.py

coverage: $(READY) $(READY_PEER) ## the tests with mcp 2.x, and the branches that they take
	@rm -f .coverage .coverage.*
	@$(BIN)/python $(COVERAGE) $(PYTEST)
	@$(BIN)/python -m coverage combine --quiet
	@$(BIN)/python -m coverage report

wheel: $(READY) | $(UV_OWN) ## what a user gets: built once, installed alone, tested as built
	@$(BIN)/python tools/check_wheel.py --uv $(UV)

peer: $(READY_PEER) ## the environment of AWS's own client library, which a test runs beside ours
	@:

dist: $(READY) | $(UV_OWN) ## the wheel and the source distribution in dist/, each tested as built
	@$(BIN)/python tools/check_wheel.py --uv $(UV) --out dist

sdk-suite: $(READY_SDK) ## the tests of the MCP SDK itself, over our layers (SDK_TESTS="path::name" narrows)
	@.venv-sdk/bin/python tools/sdk_suite.py --workers $(WORKERS) $(SDK_TESTS)

conformance: $(READY) ## the client scenarios of the MCP conformance suite, through a Gateway (SCENARIOS="name" narrows)
	@$(BIN)/python tools/conformance.py --workers $(WORKERS) $(SCENARIOS)

check-clients: $(READY) | $(UV_OWN) ## four faults on each of nine clients, each in an environment of its own
	@PYTHONPATH=tools $(BIN)/python -m clients.run --uv $(UV) --smoke $(CLIENTS)
	@$(BIN)/python -m pytest -q tests/house/test_pydantic_ai_spans.py

compat: $(READY) | $(UV_OWN) ## every fault on every client, with and without surefoot; writes the page
	@PYTHONPATH=tools $(BIN)/python -m clients.run --uv $(UV) --write $(CLIENTS)

floors: $(READY) | $(UV_OWN) ## the core tests with the lowest versions that are declared
	@$(BIN)/python tools/floors.py --uv $(UV) --workers $(WORKERS)

pythons: $(READY) | $(UV_OWN) ## the core tests with each later Python that is there
	@$(BIN)/python tools/pythons.py --uv $(UV) --workers $(WORKERS)

demo: $(READY) ## the same calls against a difficult gateway, without and with surefoot
	@$(BIN)/surefoot demo

bench: $(READY_BENCH) ## every benchmark and its peers, in under five minutes, into benchmarks/RESULTS.md
	@.venv-bench/bin/python benchmarks/run_all.py --write benchmarks/RESULTS.md

api: $(READY) ## write the public names down, after a change that is meant (tests/house/public_api.txt)
	@$(BIN)/python tools/public_api.py --write

docs: $(READY_DOCS) ## the documentation as a site in build/docs, strictly, and looked at in a browser
	@.venv-docs/bin/python tools/check_docs.py $(DOCS_ARGS)

clean: ## remove environments, caches and results
	rm -rf .venv .venv-mcp1 .venv-bench .venv-clients .venv-docs .venv-floors* .venv-peer .venv-py* .venv-sdk .venv-uv
	rm -rf .hypothesis .pytest_cache .ruff_cache build dist .coverage .coverage.*
	find benchmarks src tests tools -name __pycache__ -prune -exec rm -rf {} +
