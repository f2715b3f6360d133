# Every target sets itself up on a fresh machine: a virtual environment, the pinned packages, the work.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: test test-all test-slow test-faults test-fuzz test-slurm test-ray test-browser lint types docs demo clean

$(STAMP): pyproject.toml constraints.txt tests/oracles.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet -c constraints.txt -e '.[dev]'
	$(BIN)/pip install --quiet --no-deps -r tests/oracles.txt
	touch $@

test: $(STAMP) lint types  ## lint, types and the default test suite, on two processes
	$(BIN)/pytest -n 2 --dist worksteal -m 'not slow and not gpu and not slurm and not ray and not browser and not faults and not fuzz'

test-all: test docs test-slow test-faults test-fuzz test-slurm test-ray test-browser  ## everything that needs no GPU

docs: $(STAMP)  ## the site, in site/; a broken link or reference, or any warning, is an error
	$(BIN)/sphinx-build --fail-on-warning --keep-going --fresh-env --quiet docs site

demo: $(STAMP)  ## a trained run, two models that grok on a CPU, a report: under three minutes
	$(BIN)/epigrok demo --out demo

test-slow: $(STAMP)  ## training runs of minutes
	$(BIN)/pytest -n 2 --dist worksteal -m slow

test-faults: $(STAMP)  ## a run killed, failed or taken over at every change it makes: minutes
	UNCHECKED=1 $(BIN)/pytest -n 2 --dist worksteal -m faults tests/faults

test-fuzz: $(STAMP)  ## thousands of malformed run directories, configurations and sweeps: minutes
	UNCHECKED=1 $(BIN)/pytest -n 2 --dist worksteal -m fuzz tests/fuzz

test-slurm: $(STAMP)  ## sweeps on a real SLURM, installed and started here; says so where it cannot
	$(BIN)/pip install --quiet -c constraints.txt -e '.[slurm]' || echo 'submitit cannot be installed here'
	cluster/slurm_on_localhost.sh install || echo 'SLURM cannot be installed here'
	$(BIN)/pytest -m slurm -rs tests/cluster

test-ray: $(STAMP)  ## sweeps on a real Ray, installed and started here; says so where it cannot
	$(BIN)/pip install --quiet -c constraints.txt -e '.[ray]' || echo 'Ray cannot be installed here'
	$(BIN)/pytest -m ray -rs tests/cluster

test-browser: $(STAMP)  ## the report in a headless Chromium, installed here; says so where it cannot
	command -v chromium >/dev/null || \
	    { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null; } || \
	    echo 'Chromium cannot be installed here'
	$(BIN)/pytest -m browser -rs tests/report

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

clean:
	rm -rf $(VENV) demo site .pytest_cache .mypy_cache .ruff_cache
