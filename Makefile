# Two commands do everything, set-up included: `make demo` and `make test`.
# The trainers have an environment of their own, which takes 2 GB.
PYTHON ?= python3
VENV ?= .venv
CHECK_VENV ?= .venv-check
TRAINERS_VENV ?= .venv-trainers
HARBOR_VENV ?= .venv-harbor
DOCS_VENV ?= .venv-docs
BENCH_VENV ?= .venv-bench
# Adapters whose packages do not go together with the other trainers': an environment each.
ADAPTERS ?= areno gem nemo_gym openenv tinker verifiers verl # nemo_gym needs PYTHON=python3.12 or newer
TOGETHER_openenv := rllib sb3 skyrl trl # these trainers install together
WITH_openenv := ,rllib,sb3,skyrl,trl
WITH_verl := ,trl
WORKERS ?= auto # processes that share the tests; auto is one a core
PYTEST ?= # more options for pytest, or the tests to run
BIN := $(VENV)/bin
# A worker that runs out of tests takes half of what another one has left.
SPREAD := -n $(WORKERS) --dist worksteal

# Tests import the package in many processes; without bytecode each of them would compile it anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-trainers test-harbor test-adapters test-install stress nightly check format docs bench clean
.PHONY: run-test-trainers run-test-harbor run-test-adapter run-check run-format run-docs run-bench

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

demo: $(VENV)/.installed ## watch an agent repair the bundled tasks, and be graded
	@$(BIN)/coding-gym demo

test: $(VENV)/.installed-test ## run the fast tests, in about 3 minutes
	@$(BIN)/python -m pytest $(SPREAD) -m 'not slow and not nightly and not trainer' $(PYTEST)

test-all: $(VENV)/.installed-test-all ## run the fast and the slow tests, in about 20 minutes
	@$(BIN)/python -m pytest $(SPREAD) -m 'not nightly and not trainer' $(PYTEST)

test-trainers: ## run the tests that need Stable-Baselines3, RLlib, TRL and other projects' agents
	@$(MAKE) --no-print-directory run-test-trainers VENV=$(TRAINERS_VENV)

run-test-trainers: $(VENV)/.installed-trainers
	@MSWEA_SILENT_STARTUP=1 $(BIN)/python -c 'import mcp, minisweagent, nano, ray, sb3_contrib, skyrl_gym, swebench, trl' # none may be skipped
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(or $(PYTEST),tests/extras tests/test_docs.py)

test-harbor: ## run Harbor's own trials in our sandboxes; needs PYTHON=python3.12 or newer
	@$(MAKE) --no-print-directory run-test-harbor VENV=$(HARBOR_VENV)

run-test-harbor: $(VENV)/.installed-harbor
	@$(BIN)/python -c 'import harbor' # none may be skipped
	@$(BIN)/python -m pytest $(or $(PYTEST),tests/extras/test_harbor.py)

test-adapters: ## run the tests of the adapters that need an environment of their own
	@failed=; for name in $(ADAPTERS); do \
	  $(MAKE) --no-print-directory run-test-adapter VENV=.venv-$$name ADAPTER=$$name \
	    || failed="$$failed $$name"; done; \
	test -z "$$failed" || { echo "these adapters failed:$$failed" >&2; exit 1; }

run-test-adapter: $(VENV)/.installed-adapter
	@$(BIN)/python -c 'import $(ADAPTER)' # none may be skipped
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(or $(PYTEST),$(patsubst %,tests/extras/test_%.py,$(ADAPTER) $(TOGETHER_$(ADAPTER)) pages trainer_kills) \
	  -k '$(ADAPTER)$(patsubst %, or %,$(TOGETHER_$(ADAPTER)))')

test-install: ## install the wheel in clean environments; more of them with PYTHON="python3.11 python3.13"
	@$(firstword $(PYTHON)) scripts/check_install.py $(PYTHON)

stress: $(VENV)/.installed-test-all ## run the soaks, fuzzers, kill runs and bombs, and validate every bundled task
	@$(BIN)/python -m pytest -m nightly tests $(PYTEST)

nightly: ## run all that CI leaves out: every trainer, the wheel, the stress tests
	@$(MAKE) --no-print-directory --keep-going test-trainers test-adapters test-install stress

check: ## lint and types
	@$(MAKE) --no-print-directory run-check VENV=$(CHECK_VENV)

run-check: $(VENV)/.installed-check
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/biome check --error-on-warnings
	@$(BIN)/mypy

format: ## fix what ruff and Biome can fix
	@$(MAKE) --no-print-directory run-format VENV=$(CHECK_VENV)

run-format: $(VENV)/.installed-check
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .
	@$(BIN)/biome check --write

docs: ## build the site into site/; a warning is an error
	@$(MAKE) --no-print-directory run-docs VENV=$(DOCS_VENV)

run-docs: $(VENV)/.installed-docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

bench: ## measure speed in about half an hour; fails if a target is missed
	@$(MAKE) --no-print-directory run-bench VENV=$(BENCH_VENV)

run-bench: $(VENV)/.installed-bench
	@rm -rf .bench; missed=; for name in sandbox env vector grading peers; do \
	  $(BIN)/python benchmarks/bench_$$name.py || missed="$$missed $$name"; done; \
	$(BIN)/python benchmarks/summary.py --results .bench; \
	test -z "$$missed" || { echo "a target was missed, or the script ended with an error:$$missed" >&2; exit 1; }

clean: ## remove the virtual environments and what tools left
	rm -rf site .bench $(VENV) $(CHECK_VENV) $(TRAINERS_VENV) $(HARBOR_VENV) $(DOCS_VENV) $(BENCH_VENV) $(ADAPTERS:%=.venv-%) .mypy_cache .pytest_cache .ruff_cache

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "coding_gym needs Python 3.11 or newer; name one: make demo PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { \
	  echo "Python's venv module is not complete; run: sudo apt-get install python3-venv" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)

# One recipe installs the package with the extras of an environment.
INSTALLED := $(VENV)/.installed
$(INSTALLED): EXTRAS =
$(INSTALLED)-test: EXTRAS = [test]
$(INSTALLED)-test-all: EXTRAS = [test-all]
$(INSTALLED)-trainers: EXTRAS = [test-all,peers,rllib,sb3,skyrl,trl]
$(INSTALLED)-harbor: EXTRAS = [test,harbor]
$(INSTALLED)-adapter: EXTRAS = [test,$(subst _,-,$(ADAPTER))$(WITH_$(ADAPTER))]
$(INSTALLED)-bench: EXTRAS = [bench]
$(INSTALLED)-check: EXTRAS = [check]
$(INSTALLED)-docs: EXTRAS = [docs]
$(INSTALLED) $(INSTALLED)-test $(INSTALLED)-test-all $(INSTALLED)-trainers $(INSTALLED)-harbor $(INSTALLED)-adapter $(INSTALLED)-bench $(INSTALLED)-check $(INSTALLED)-docs: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing into $(VENV) …"
	@$(BIN)/python -m pip --disable-pip-version-check install --quiet --editable '.$(EXTRAS)' --constraint constraints.txt
	@touch $(INSTALLED) $@
