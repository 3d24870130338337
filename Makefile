# `make` lists every command. Each one sets up the environment first, so a fresh clone needs nothing but Python 3.11+ and make.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
JOBS ?= 4
DEPTH ?= 10

# Compiled Python is kept, whatever the shell says: tests start hundreds of processes.
export PYTHONDONTWRITEBYTECODE :=

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk 'BEGIN {FS = ":.*## "} {printf "  make %-12s %s\n", $$1, $$2}'

$(READY): pyproject.toml constraints.txt
	@test -x $(BIN)/python || (command -v uv >/dev/null && uv venv --quiet --seed --python $(PYTHON) $(VENV)) || $(PYTHON) -m venv $(VENV)
	@if command -v uv >/dev/null; then uv pip install --quiet --python $(BIN)/python -c constraints.txt -e '.[dev]'; \
	 else $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'; fi
	@touch $(READY)

setup: $(READY) ## create the environment in .venv

lock: ## resolve all dependencies anew and write constraints.txt
	@$(PYTHON) .ci/lock.py

demo: $(READY) ## run the main example and show its result
	@$(BIN)/python examples/demo.py

test: $(READY) ## run all the tests
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup

test-quick: $(READY) ## run the tests that need no server, no process and little time
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup --quick

test-deep: $(READY) ## run all the tests, with ten times as many random examples and every case of every table
	@PENSTOCK_TEST_DEPTH=$(DEPTH) $(BIN)/python -m pytest -n $(JOBS) --dist loadgroup

conformance: $(READY) ## list every clause of the specification with its tests and results
	@JOBS=$(JOBS) $(BIN)/python -m tests.conformance

bench: $(READY) ## measure speed against floors and peers, in one run
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]' || true
	@$(BIN)/python -m benchmarks

lint: $(READY) ## ruff, types and import layers
	@$(BIN)/ruff check src tests benchmarks examples docs/generator
	@$(BIN)/ruff format --check src tests benchmarks examples docs/generator
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

docs: $(READY) ## write the reference pages anew from the code
	@$(BIN)/python -m docs.generator docs/reference

docs-check: $(READY) ## fail when a reference page is out of date or a link is dead
	@$(BIN)/python -m docs.generator docs/reference --check

format: $(READY) ## put the code into its form
	@$(BIN)/ruff format src tests benchmarks examples docs/generator
	@$(BIN)/ruff check --fix src tests benchmarks examples docs/generator

clean: ## remove the environment and caches
	@rm -rf $(VENV) .mypy_cache .ruff_cache .hypothesis .import_linter_cache .evidence.json

.PHONY: help setup lock demo test test-quick test-deep conformance bench lint docs docs-check format clean
