# Every target sets itself up on a fresh machine: a virtual environment, the pinned packages, the work.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: test test-slow lint types demo clean

$(STAMP): pyproject.toml constraints.txt tests/oracles.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet -c constraints.txt -e '.[dev]'
	$(BIN)/pip install --quiet --no-deps -r tests/oracles.txt
	touch $@

test: $(STAMP) lint types  ## lint, types and the default test suite
	$(BIN)/pytest -m 'not slow and not gpu'

demo: $(STAMP)  ## two models grok on a CPU, in under three minutes
	$(BIN)/epigrok demo --out demo

test-slow: $(STAMP)  ## training runs of minutes
	$(BIN)/pytest -m slow

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

clean:
	rm -rf $(VENV) demo .pytest_cache .mypy_cache .ruff_cache
