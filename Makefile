# `make demo` and `make test` do everything, set-up included, in the environment .venv.
PYTHON ?= python3
VENV ?= .venv
WORKERS ?= auto # processes that share the tests; auto is one per core
PYTEST ?= # more options for pytest, or the tests to run
KEYWORD ?= # a word in the names of the trainer tests to run
# Environments of trainers; those of `together` install together. nemo-gym needs Python 3.12.
TRAINERS ?= together openenv verifiers verl nemo-gym areno gem skyrl tinker llama-cpp
BIN := $(VENV)/bin
SPREAD := -n $(WORKERS) --dist worksteal

EXTRAS_main := hf,datasets,inspect,serve
GROUPS_main := dev
GROUPS_docs := docs
GROUPS_bench := bench
EXTRAS_together := hf,llm,ray,rllib,sb3,serve,trl
GROUPS_together := test peers
IMPORTS_together := ray, sb3_contrib, trl, minisweagent, nano, swebench
EXTRAS_openenv := openenv
EXTRAS_verifiers := verifiers
EXTRAS_verl := verl,trl
EXTRAS_nemo-gym := nemo-gym
EXTRAS_llama-cpp := llm
PACKAGE_areno := areno
PACKAGE_gem := gem-llm
PACKAGE_skyrl := skyrl-gym
PACKAGE_tinker := tinker-cookbook==0.5.8
PACKAGE_llama-cpp := xllamacpp==2026.10.11549
IMPORTS_nemo-gym := nemo_gym
IMPORTS_skyrl := skyrl_gym
IMPORTS_tinker := tinker_cookbook
IMPORTS_llama-cpp := xllamacpp

# Tests import the package in many processes; without bytecode each of them would compile it again.
unexport PYTHONDONTWRITEBYTECODE
.DEFAULT_GOAL := help
.PHONY: help demo test test-all check format docs bench nightly trainers clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

demo: $(VENV)/.installed ## watch an agent repair the bundled tasks, and be graded
	@$(BIN)/coding-gym demo

test: $(VENV)/.installed ## run the fast tests
	@$(BIN)/python -m pytest $(SPREAD) -m 'not slow and not nightly and not trainer' $(PYTEST)

test-all: $(VENV)/.installed ## run the fast and the slow tests
	@$(BIN)/python -m pytest $(SPREAD) --durations=25 -m 'not nightly and not trainer' $(PYTEST)

check: $(VENV)/.installed ## lint and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/biome check --error-on-warnings
	@$(BIN)/shellcheck coding_gym/workspace/*.sh coding_gym/sandbox/*.sh coding_gym/sandbox/images/*.sh .ci/run
	@$(BIN)/mypy

format: $(VENV)/.installed ## fix what ruff and Biome can fix
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .
	@$(BIN)/biome check --write

docs: .venv-docs/.installed ## build the site into site/; a warning is an error
	@NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build

bench: .venv-bench/.installed ## measure five figures, each against a peer
	@.venv-bench/bin/python benchmarks/bench.py

nightly: $(VENV)/.installed ## run what CI skips: soaks, kills, browsers, the wheel, every trainer
	@$(BIN)/python -m pytest -m 'nightly and not trainer' $(PYTEST)
	@$(BIN)/python scripts/check_install.py $(PYTHON)
	@$(MAKE) --no-print-directory trainers

trainers: ## run the tests of trainers, each environment in turn; TRAINERS="verl gem" names some
	@failed=; for name in $(TRAINERS); do \
	  $(MAKE) --no-print-directory trainer-$$name || failed="$$failed $$name"; done; \
	test -z "$$failed" || { echo "these failed:$$failed" >&2; exit 1; }

trainer-%: .venv-%/.installed
	@.venv-$*/bin/python -c 'import $(or $(IMPORTS_$*),$*)' # none may be skipped
	@OMP_NUM_THREADS=1 .venv-$*/bin/python -m pytest tests/extras tests/test_docs.py -m trainer $(PYTEST) \
	  -k '$(if $(filter-out together,$*),$(subst -,_,$*),test)$(if $(strip $(KEYWORD)), and $(strip $(KEYWORD)))'

clean: ## remove the virtual environments, the site and the caches of tools
	rm -rf site .venv .venv-* .mypy_cache .pytest_cache .ruff_cache

# Makes an environment with the extras, groups and packages of a name.
define install
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "coding_gym needs Python 3.11 or newer; name one: make demo PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { \
	  echo "Python's venv module is not complete; run: sudo apt-get install python3-venv" >&2; exit 1; }
	@echo "installing into $(@D) …"
	@$(PYTHON) -m venv $(@D)
	@$(@D)/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	@$(@D)/bin/python -m pip install --quiet --constraint constraints.txt \
	  --editable '.$(if $(EXTRAS_$(1)),[$(EXTRAS_$(1))])' $(PACKAGE_$(1)) \
	  $(addprefix --group ,$(or $(GROUPS_$(1)),test))
	@touch $@
endef

$(VENV)/.installed: pyproject.toml constraints.txt
	$(call install,main)

.venv-%/.installed: pyproject.toml constraints.txt
	$(call install,$*)

.PRECIOUS: .venv-%/.installed
