# Two commands are enough: `make run` evaluates the sample, `make test` proves the code.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
SAMPLES := data/sample data/sample/terraform data/sample/python
CONFIG ?= $(SAMPLES:=/evaluation_config.json)
READY := $(VENV)/.ready

export UV_COMPILE_BYTECODE := 1
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help setup sandbox chromium postgres run demo ui test test-installed test-browser test-services screenshots test-nightly fuzz
.PHONY: check format docs sample lock bench clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: $(READY) ## make the environment in .venv

$(READY): requirements.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "error: $(PYTHON) is not on PATH; install Python 3.11 or pass PYTHON=/path/to/python3.11"; exit 2; }
	@echo "setting up $(VENV), once: 1 of 3, the installer"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check 'uv>=0.13,<0.14'
	@echo "setting up $(VENV), once: 2 of 3, $$(grep -c '^[a-z].*==' requirements.lock) packages (a minute or more)"
	@$(BIN)/uv pip install --python $(BIN)/python --require-hashes --requirements requirements.lock
	@echo "setting up $(VENV), once: 3 of 3, Touchstone itself"
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	@$(BIN)/python -m compileall -q assets pipelines touchstone # once, not in every process that starts first
	@find $(VENV)/lib -name RECORD -exec touch {} + # uv compiles after writing it; what is newer than its RECORD is hashed
	@touch $@

sandbox: ## install bubblewrap, the sandbox of validation, where it is missing and may be installed
	@command -v bwrap >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && echo "installing bubblewrap" && \
		{ apt-get update && apt-get install --yes bubblewrap; } >/dev/null 2>&1; } || true
	@command -v bwrap >/dev/null || echo "note: bubblewrap is not installed, so validation falls back to landlock; Debian and Ubuntu: sudo apt-get install bubblewrap"

run: $(READY) sandbox ## evaluate the samples: recorded outcomes, Terraform fixes, Python fixes (CONFIG=... for your own)
	@$(BIN)/touchstone run --config $(CONFIG)

DEMO := data/output/demo
demo: $(READY) ## the gate at work: a regression put into the sample, the run that it stops, and the report
	@$(BIN)/python data/sample/make_regression.py copy $(DEMO)
	@$(BIN)/touchstone run --config $(DEMO)/evaluation_config.json >/dev/null
	@$(BIN)/touchstone snapshots pin latest baseline --data $(DEMO)/results
	@$(BIN)/python data/sample/make_regression.py break $(DEMO)
	@$(BIN)/touchstone run --config $(DEMO)/evaluation_config.json; test $$? = 1
	@cat $(DEMO)/results/comparison.md

ui: $(READY) sandbox ## the Dagster UI of one evaluation on http://127.0.0.1:3000 (CONFIG=... for another)
	@for other in $(wordlist 2,9,$(CONFIG)); do echo "another sample: make ui CONFIG=$$other"; done
	@$(BIN)/touchstone ui --config $(firstword $(CONFIG))

test: $(READY) sandbox ## run the tests
	@OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 3 --dist worksteal # more threads would wait for each other

test-installed: $(READY) ## the built wheel in an environment and a folder of its own
	@$(BIN)/pytest -m 'installed and not nightly' tests/test_installed.py

test-nightly: $(READY) sandbox ## long simulations, many examples of every property, further whole runs, kills at any moment, crowded processors
	@$(BIN)/pytest -m 'nightly or hypothesis' --hypothesis-profile nightly -n 2 --dist worksteal -rP

TARGET ?=
SECONDS ?= 60
fuzz: $(READY) ## fuzz the readers (TARGET=csv, else all; SECONDS=600 each), guided by atheris where it is installed
	@$(BIN)/python -c 'import atheris' 2>/dev/null || echo "note: without atheris the project's own engine runs; to install it: $(BIN)/uv pip install --python $(BIN)/python 'atheris>=3,<4' (where there is no wheel, that needs clang and takes long)"
	@$(BIN)/python -m tests.fuzz.run $(TARGET) --seconds $(SECONDS)

chromium: ## install Chromium, the browser of the tests, where it is missing and may be installed
	@command -v chromium >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && echo "installing chromium" && \
		{ apt-get update && apt-get install --yes chromium; } >/dev/null 2>&1; } || true

test-browser: $(READY) sandbox chromium ## the report, the dashboard and the Dagster UI in a real browser
	@$(BIN)/pytest -m browser -n 2 --dist loadfile -rs tests/browser # a file has one server

postgres: ## install Postgres, for the tests of a deployment, where it is missing and may be installed
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
		echo "installing postgresql" && { apt-get update && apt-get install --yes postgresql; } >/dev/null 2>&1; } || true

test-services: $(READY) sandbox postgres chromium ## against real servers: a deployment on Postgres, object storage, a Dask cluster; slow tests
	@$(BIN)/pytest -m 'services and not nightly' -n 0 -x -rs tests # one deployment for all tests: after a failure it is in an unknown state

screenshots: $(READY) sandbox chromium ## take the pictures of README.md and docs/ again
	@$(BIN)/python -m tests.browser.screenshots

check: $(READY) ## format, lint, types, generated files
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/mypy action
	@$(BIN)/python -m touchstone.publish.data_dictionary --check docs

format: $(READY) ## format the code
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

docs: $(READY) ## write the generated docs: docs/tables and docs/configuration.md
	@$(BIN)/python -m touchstone.publish.data_dictionary --write docs

sample: $(READY) ## write data/sample anew
	@$(BIN)/python data/sample/make_sample.py
	@$(BIN)/python data/sample/make_repairs.py

lock: $(READY) ## resolve requirements.lock anew
	@$(BIN)/uv pip compile pyproject.toml --extra dev --quiet --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' --upgrade --output-file requirements.lock

bench: $(READY) ## every speed claim, measured
	@mkdir -p data/output && rm -f data/output/ratios.jsonl
	@for each in "whole_run --skip-slow" "pass_at_k --skip-slow" validation thousand_workers uncertainty; do \
		set -- $$each; script=benchmarks/$$1.py; shift; \
		TOUCHSTONE_RATIOS=data/output/ratios.jsonl $(BIN)/python $$script "$$@" || exit; done
	@$(BIN)/python benchmarks/ratios.py data/output/ratios.jsonl

clean: ## remove the environment and all output
	@rm -rf $(VENV) data/output .mypy_cache .ruff_cache .pytest_cache .hypothesis
