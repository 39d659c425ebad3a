# Needs Python 3.11 or newer, git and make; everything else goes into .venv.

.DEFAULT_GOAL := help
.PHONY: help test test-uncounted test-lowest lint lint-quick format demo bench figures fuzz packages suites docs release-check gpu-check tell-demo clean

# Asked for its version, not only looked up: a name on the path need not be a Python that runs.
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; \
	then echo "$$python"; break; fi; done)
BIN := .venv/bin
# As many as there are processors, at most eight: each collects all tests first.
WORKERS ?= auto
PARALLEL := --numprocesses $(WORKERS) --maxprocesses 8 --dist worksteal

# What Python compiles when it imports is kept, also where it is told not to.
unexport PYTHONDONTWRITEBYTECODE

# $(call step,TITLE,COMMAND): one line if all is well, the whole output if not.
define step
@printf '%-16s' '$(1)'; \
if output=$$($(2) 2>&1); then echo ok; else echo FAILED; printf '%s\n' "$$output"; exit 1; fi
endef

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

# mypy works beside the tests: it takes the time of many, and of one processor only. What it says stands at the end.
test: lint-quick ## lint, and run tests, doctests, examples and README code
	@types=$$(mktemp); $(BIN)/mypy > $$types 2>&1 & checker=$$!; \
	JAX_PLATFORMS=cpu $(BIN)/python -m pytest --quiet $(PARALLEL) \
		--durations 10 --durations-min 1; tests=$$?; \
	printf '%-16s' mypy; if wait $$checker; then echo ok; else echo FAILED; cat $$types; tests=1; fi; \
	rm $$types; exit $$tests

test-uncounted: .venv/.test ## run the tests as on a Python without usable reference counts
	@JAX_PLATFORMS=cpu $(BIN)/python -m pytest --quiet $(PARALLEL) --without-counts

lint: lint-quick ## run ruff, import-linter and mypy
	$(call step,mypy,$(BIN)/mypy)

lint-quick: .venv/.test
	$(call step,ruff check,$(BIN)/ruff check --quiet .)
	$(call step,ruff format,$(BIN)/ruff format --check .)
	$(call step,import-linter,$(BIN)/lint-imports)

# Not several processes: those of an older JAX wait for each other for minutes.
JAX ?= 0.4.38
test-jax: .venv/jax-$(JAX)/.installed ## run the tests that use JAX with another version of JAX (JAX)
	@JAX_PLATFORMS=cpu OMP_NUM_THREADS=1 .venv/jax-$(JAX)/bin/python -m pytest --quiet -p no:cacheprovider \
		$(addprefix tests/,$(addsuffix .py,$(addprefix interop/jax/test_,jit to_jax from_jax jax_backend devices data_parallel) \
		$(addprefix interop/crosschecks/test_,crosscheck crosscheck_command jax_divergences) \
		$(addprefix transforms/test_,implicit custom_rules custom_rules_errors checkpoint) transforms/control/test_control_flow \
		$(addprefix test_,conventions conventions_linalg random_programs) numpy/test_functional)) -k 'not process'
	@JAX_PLATFORMS=cpu OMP_NUM_THREADS=1 .venv/jax-$(JAX)/bin/python -m pytest --quiet -p no:cacheprovider \
		tests/test_operations.py -k 'test_on_jax_arrays and (linalg or sum or where) and not scipy'

test-lowest: .venv/lowest/.installed ## run the tests with the lowest versions that pyproject.toml declares (TESTS)
	@JAX_PLATFORMS=cpu OMP_NUM_THREADS=1 .venv/lowest/bin/python -m pytest --quiet -p no:cacheprovider \
		$(PARALLEL) $(TESTS)

format: .venv/.test ## sort the imports and format the code
	@$(BIN)/ruff check --quiet --select I --fix .
	@$(BIN)/ruff format .

demo: | tell-demo .venv/.demo ## run the demonstration (the first run takes a minute, with installation)
	@$(BIN)/python examples/digits.py

tell-demo:
	@test -e .venv/.demo || echo 'The first run installs what it needs into .venv, which takes about a minute.'

bench: .venv/.bench ## measure against other libraries (ONLY, AGAINST)
	@$(BIN)/python benchmarks/run.py --only '$(ONLY)' --against '$(AGAINST)'

# Bars that are missed do not keep the figures from the page.
figures: .venv/.bench ## measure, and write the figures into docs/performance.md
	-@$(BIN)/python benchmarks/run.py
	@$(BIN)/python docs/performance.py out/benchmarks.json

packages: .venv/.test ## try packages that do not know funcgrad (fetched by pip, in build/packages)
	@$(BIN)/python benchmarks/packages.py

suites: .venv/.test ## run the suites of packages that use HIPS autograd, on both (fetched by pip, in build/suites)
	@$(BIN)/python benchmarks/suites.py

docs: .venv/.test .venv/.docs ## run the code of all pages, and build the site
	@JAX_PLATFORMS=cpu $(BIN)/python -m pytest --quiet tests/test_readme.py
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet && echo build/site/index.html

# Needs pip's index, for what the wheel requires. TESTS may name some of the tests; URL is the address of the repository,
# which makes the links of the README work outside of it.
TESTS ?= tests
URL ?=
release-check: .venv/.test ## build wheel and sdist, and test the wheel in an empty environment (TESTS, URL)
	@JAX_PLATFORMS=cpu $(BIN)/python tests/release_check.py --workers $(WORKERS) --url '$(URL)' $(TESTS)

gpu-check: .venv/.test ## check every function and measure, on a GPU if there is one
	@$(BIN)/python examples/gpu.py

# Programs are made of SEED and their numbers, so START goes on where another run ended.
N ?= 1000
SEED ?= 0
START ?= 0
JOBS ?= 2
fuzz: .venv/.test ## compare N random programs with JAX (SEED, START, JOBS)
	@JAX_PLATFORMS=cpu OMP_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python -m fuzz \
		--count $(N) --seed $(SEED) --start $(START) --jobs $(JOBS)

clean: ## remove .venv, caches and everything built
	@rm -rf .venv build dist out *.egg-info .coverage .hypothesis .import_linter_cache \
		.mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# `--clear` because this runs when there is no environment or its Python has gone.
$(BIN)/python:
	@test -n '$(PYTHON)' || { echo 'funcgrad needs Python 3.11 or newer: make PYTHON=/path/to/python3' >&2; exit 1; }
	$(call step,environment,'$(PYTHON)' -m venv --clear .venv)

.venv/jax-%/.installed: pyproject.toml | $(BIN)/python
	$(call step,environment,'$(PYTHON)' -m venv --clear .venv/jax-$*)
	$(call step,install jax $*,.venv/jax-$*/bin/python -m pip install --quiet --disable-pip-version-check \
		--editable '.[test]' 'jax==$*' 'jaxlib==$*')
	@touch $@

.venv/lowest/.installed: pyproject.toml tests/lowest.txt | $(BIN)/python
	$(call step,environment,'$(PYTHON)' -m venv --clear .venv/lowest)
	$(call step,install lowest,.venv/lowest/bin/python -m pip install --quiet --disable-pip-version-check \
		--editable '.[test]' --constraint tests/lowest.txt)
	@touch $@

# One stamp for each extra, remade when pyproject.toml changes. All processors compile what was installed, but for the
# tests that packages bring; pip would compile it all, on one, which takes half of installing.
.venv/.%: pyproject.toml | $(BIN)/python
	$(call step,install [$*],$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable '.[$*]')
	@$(BIN)/python -m compileall -q -j 0 -x '/tests?/' .venv/lib >/dev/null 2>&1 || true
	@touch $@
