# `make` lists every command. Each one sets up the environment first, so a fresh clone needs nothing but Python 3.11+ and make.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
JOBS ?= 4
DEPTH ?= 10
PYTHONS := src tests benchmarks examples docs/generator hatch_build.py web/build.py

# Compiled Python is kept, whatever the shell says: tests start hundreds of processes.
export PYTHONDONTWRITEBYTECODE :=

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk 'BEGIN {FS = ":.*## "} {printf "  make %-12s %s\n", $$1, $$2}'

$(READY): pyproject.toml constraints.txt
	@test -x $(BIN)/python || (command -v uv >/dev/null && uv venv --quiet --seed --python $(PYTHON) $(VENV)) || $(PYTHON) -m venv $(VENV)
	@if command -v uv >/dev/null; then uv pip install --quiet --python $(BIN)/python -c constraints.txt -e '.[dev]'; \
	 else $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'; fi
	@touch $(READY)

setup: $(READY) web ## create the environment in .venv, and build the page

lock: ## resolve all dependencies anew and write constraints.txt
	@$(PYTHON) .ci/lock.py

web: $(READY) ## build the web page, if its sources have changed
	@$(BIN)/python web/build.py

web-check: $(READY) ## form, types and tests of the web page, and whether it knows the API as it is
	@$(BIN)/python web/build.py --check

web-client: $(READY) ## write the page's types of the API anew
	@$(BIN)/python web/build.py --client

demo: $(READY) web ## run the main example and show its result
	@$(BIN)/python examples/demo.py

test: $(READY) web ## run all the tests
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup

test-quick: $(READY) web ## run the tests that need no server, no process and little time
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup --quick

test-deep: $(READY) web ## run all the tests, with ten times as many random examples and every case of every table
	@PENSTOCK_TEST_DEPTH=$(DEPTH) $(BIN)/python -m pytest -n $(JOBS) --dist loadgroup

conformance: $(READY) web ## list every clause of the specification with its tests and results
	@JOBS=$(JOBS) $(BIN)/python -m tests.conformance

bench: $(READY) web ## measure speed against floors and peers, in one run
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]' || true
	@$(BIN)/python -m benchmarks

lint: $(READY) ## ruff, types and import layers
	@$(BIN)/ruff check $(PYTHONS)
	@$(BIN)/ruff format --check $(PYTHONS)
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

docs: $(READY) ## write the reference pages anew from the code
	@$(BIN)/python -m docs.generator docs/reference

docs-check: $(READY) ## fail when a reference page is out of date or a link is dead
	@$(BIN)/python -m docs.generator docs/reference --check

pictures: $(READY) web ## make the pictures of the README and the examples anew
	@$(BIN)/python docs/images/make.py
	@$(BIN)/python -m docs.images.page

format: $(READY) ## put the code into its form
	@$(BIN)/ruff format $(PYTHONS)
	@$(BIN)/ruff check --fix $(PYTHONS)

clean: ## remove the environment and caches
	@rm -rf $(VENV) .mypy_cache .ruff_cache .hypothesis .import_linter_cache .evidence.json
	@rm -rf web/node_modules web/.node web/.page web/.lock src/penstock/web

.PHONY: help setup lock web web-check web-client demo test test-quick test-deep conformance bench lint docs docs-check pictures format clean
