PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

# The packages that decide. A branch of theirs that no test takes is a decision nobody has looked at.
DECIDING := jobs/thrash/*,jobs/alert/*,jobs/verification/*,jobs/generation/*,jobs/pinning/*,jobs/digest/*

# A worker for each core: most tests wait for other processes.
AT_ONCE := -n auto --dist worksteal

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install demo test check format-check lint types imports coverage prove bench format lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(STAMP) ## put the program into .venv/bin/loopwarden

demo: $(STAMP) ## try the bot in this terminal, no token needed
	$(BIN)/loopwarden demo

test: $(STAMP) ## run the tests
	$(BIN)/pytest $(AT_ONCE)

check: format-check lint types imports coverage ## the whole gate: everything below up to coverage

format-check: $(STAMP) ## is the code formatted?
	$(BIN)/ruff format --check

lint: $(STAMP) ## ruff
	$(BIN)/ruff check

types: $(STAMP) ## mypy, strict, tests too
	$(BIN)/mypy

imports: $(STAMP) ## do the imports follow the architecture?
	$(BIN)/lint-imports

coverage: $(STAMP) ## the tests under branch coverage: decisions 100 %, the whole 95 %
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest $(AT_ONCE)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report
	$(BIN)/coverage report --include='$(DECIDING)' --fail-under=100

prove: $(STAMP) ## the slow proofs
	$(BIN)/pytest -m prove

bench: $(STAMP) ## ratios of speed and memory, each with what is wanted; takes some minutes and 3 GB of disk
	$(BIN)/uv pip install --quiet --python $(BIN)/python --group bench
	$(BIN)/python benchmarks/quick_commands.py
	$(BIN)/python benchmarks/read_from_start.py
	$(BIN)/python benchmarks/replay.py
	$(BIN)/python benchmarks/scan_growth.py
	$(BIN)/python benchmarks/many_sessions.py
	$(BIN)/python benchmarks/session_files.py
	$(BIN)/python benchmarks/source_speed.py
	$(BIN)/python benchmarks/delivery.py
	$(BIN)/python benchmarks/hostile_memory.py
	$(BIN)/python benchmarks/verification.py
	$(BIN)/python benchmarks/history.py
	$(BIN)/python benchmarks/digest.py

format: $(STAMP) ## format the code, and fix what ruff can fix
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# UV_FLAGS=--upgrade takes the newest releases; without it only what pyproject.toml asks for changes.
UV_LOCK = $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url \
	--custom-compile-command 'make lock' $(UV_FLAGS)

lock: $(STAMP) ## resolve pyproject.toml into the two locks
	$(UV_LOCK) pyproject.toml --output-file requirements.lock
	$(UV_LOCK) pyproject.toml --group dev --constraint requirements.lock --output-file requirements-dev.lock

clean: ## remove all that make has made
	rm -rf $(VENV) dist .coverage .coverage.* .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find bot jobs tests benchmarks -name __pycache__ -prune -exec rm -rf {} +

$(STAMP): pyproject.toml requirements-dev.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Loopwarden needs Python 3.11 or newer, and '$(PYTHON)' is not. Name one: make PYTHON=python3.12" >&2; \
		exit 1; \
	}
	@echo "Installing into $(VENV): 450 MB, half a minute or more"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	touch $@
