# The things a developer does. `make train` and `make test` need no more than Python 3.11-3.13 and a package index.
PYTHON ?= $(firstword $(foreach python,python3.13 python3.12 python3.11 python3,$(shell $(python) -c 'import sys; 0 if (3, 11) <= sys.version_info[:2] <= (3, 13) else sys.exit(1)' 2>/dev/null && command -v $(python))))
BIN = .venv/bin
INSTALL = $(BIN)/pip install --quiet --disable-pip-version-check --editable

.PHONY: train test test-slow check docs notebooks bench paper soak soak_serving mutants

train: .venv/installed
	$(BIN)/python -m keras_transformer.train --flagfile=tiny.flags

# Two lanes, both in random order: PYTEST_ADDOPTS=--randomly-seed=N repeats one.
PYTEST = $(BIN)/python -m pytest --numprocesses=auto --dist=loadfile --no-loadscope-reorder

test: .venv/tested
	$(PYTEST) -m "not slow"

test-slow: .venv/tested
	$(PYTEST) -m slow

check: .venv/tested
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# Pages for a browser, in site/. The time in them is fixed: equal sources give equal files.
docs: .venv/installed
	$(INSTALL) '.[docs]'
	NO_MKDOCS_2_WARNING=1 SOURCE_DATE_EPOCH=0 $(BIN)/mkdocs build --quiet

# Each command and block of README and docs/ is run, with small files in place of big ones.
.PHONY: docs-check
docs-check: .venv/tested
	$(PYTEST) tests/documentation

# Each notebook is made from its source, and executed.
NOTEBOOKS = $(patsubst %.py,%.ipynb,$(wildcard notebooks/*.py))

notebooks: $(NOTEBOOKS)

# What fails is made again: a notebook is written before it is executed.
.DELETE_ON_ERROR:

notebooks/%.ipynb: notebooks/%.py .venv/notebooks
	$(BIN)/jupytext --quiet --to ipynb $<
	$(BIN)/jupyter-execute --inplace --timeout=600 $@

# It shows what is kept there.
notebooks/reproduce.ipynb: $(wildcard benchmarks/paper/results/*.json benchmarks/paper/results/*/*.json)

.venv/notebooks: .venv/installed
	$(INSTALL) '.[notebooks,serve,imports]'
	touch $@

bench: .venv/installed
	$(INSTALL) '.[ctranslate2]'
	$(BIN)/python -m benchmarks.peers.agreement

# What the paper's trainings cost, and its parameters, counted without training.
paper: .venv/installed
	$(BIN)/python -m benchmarks.paper.table2 --recipes=base,big
	$(BIN)/python -m benchmarks.paper.table3

soak: .venv/installed
	$(BIN)/python -m benchmarks.limits.soak

soak_serving: .venv/installed
	$(INSTALL) '.[serve]'
	$(BIN)/python -m benchmarks.limits.serving_soak

# Which small changes of the source do the tests miss? MUTANTS=--changed=COMMIT: of the files changed since.
mutants: .venv/tested
	$(BIN)/python -m benchmarks.mutants.mutation --seconds=40 $(MUTANTS)

.venv/installed: setup.cfg
	@test -n "$(PYTHON)" || { echo "error: no Python 3.11, 3.12 or 3.13 found. Install one, or name it: make PYTHON=/path/to/python"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(INSTALL) .
	touch $@

.venv/tested: .venv/installed
	$(INSTALL) '.[test]'
	touch $@
