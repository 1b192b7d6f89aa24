# Two commands do everything, set-up included: `make demo` and `make test`.
# The trainers have an environment of their own, which takes 2 GB.
PYTHON ?= python3
VENV ?= .venv
TRAINERS_VENV ?= .venv-trainers
PYTEST ?= # more options for pytest
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo test test-trainers run-test-trainers check format bench clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

demo: $(VENV)/.installed ## watch an agent repair the bundled tasks, and be graded
	@$(BIN)/coding-gym demo

test: $(VENV)/.installed-dev ## run the tests
	@$(BIN)/python -m pytest $(PYTEST)

test-trainers: ## run the tests that need Stable-Baselines3, RLlib, TRL and nano-agent
	@$(MAKE) --no-print-directory run-test-trainers VENV=$(TRAINERS_VENV)

run-test-trainers: $(VENV)/.installed-trainers
	@MSWEA_SILENT_STARTUP=1 $(BIN)/python -c 'import mcp, minisweagent, nano, ray, sb3_contrib, swebench, trl' # none may be skipped
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/extras tests/tasks/test_source_hub.py tests/test_docs.py

check: $(VENV)/.installed-dev ## lint and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: $(VENV)/.installed-dev ## mend what ruff can mend
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(VENV)/.installed-dev ## print the speed figures of this machine, as ratios
	@$(BIN)/python benchmarks/bench_core.py
	-@$(BIN)/python benchmarks/bench_sandbox.py --results .bench
	-@$(BIN)/python benchmarks/bench_peers.py --results .bench

clean: ## remove the virtual environments and what tools left
	rm -rf $(VENV) $(TRAINERS_VENV) .mypy_cache .pytest_cache .ruff_cache

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "coding_gym needs Python 3.11 or newer; name one: make demo PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { \
	  echo "Python's venv module is not complete; run: sudo apt-get install python3-venv" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing into $(VENV) …"
	@$(PIP) install --quiet --editable . --constraint constraints.txt
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing into $(VENV) …"
	@$(PIP) install --quiet --editable '.[dev]' --constraint constraints.txt
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-trainers: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing into $(VENV) …"
	@$(PIP) install --quiet --editable '.[dev,peers,rllib,sb3,trl]' --constraint constraints.txt
	@touch $@
