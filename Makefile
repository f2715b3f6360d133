# Every target sets itself up on a fresh machine: a virtual environment, the pinned packages, the work.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

LOWEST := .venv-lowest
# The oldest torch that is claimed comes as a GPU build of gigabytes, so it is asked for by name.
LOWEST_TORCH ?= 2.13.0

# The oldest whose interpreter works with the pinned NumPy.
TRITON ?= 3.8.0

.PHONY: test test-all test-slow test-faults test-fuzz test-kernels test-slurm test-ray test-browser test-lowest lint types \
    docs demo wheel pre-commit clean

$(STAMP): pyproject.toml constraints.txt tests/oracles.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet -c constraints.txt -e '.[dev]'
	$(BIN)/pip install --quiet --no-deps -r tests/oracles.txt
	touch $@

test: $(STAMP) lint types  ## lint, types and the default test suite, on two processes
	$(BIN)/pytest -n 2 --dist worksteal -m 'not slow and not gpu and not slurm and not ray and not browser and not faults and not fuzz and not interpreted'

test-all: test docs test-slow test-faults test-fuzz test-kernels test-slurm test-ray test-browser  ## everything that needs no GPU

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

test-kernels: $(STAMP)  ## every GPU kernel in Triton's interpreter, on a CPU; says so where it cannot
	$(BIN)/pip install --quiet --no-deps triton==$(TRITON) || echo 'Triton cannot be installed here'
	UNCHECKED=1 TRITON_INTERPRET=1 $(BIN)/pytest -m interpreted -rs tests/gpu/test_kernels.py

test-slurm: $(STAMP)  ## sweeps on a real SLURM, installed and started here; says so where it cannot
	$(BIN)/pip install --quiet -c constraints.txt -e '.[slurm]' || echo 'submitit cannot be installed here'
	cluster/slurm_on_localhost.sh install || echo 'SLURM cannot be installed here'
	$(BIN)/pytest -m slurm -rs tests/cluster

test-ray: $(STAMP)  ## sweeps on a real Ray, installed and started here; says so where it cannot
	$(BIN)/pip install --quiet -c constraints.txt -e '.[ray]' || echo 'Ray cannot be installed here'
	$(BIN)/pytest -m ray -rs tests/cluster

test-browser: $(STAMP)  ## the report and the site in a headless Chromium, installed here; says so where it cannot
	command -v chromium >/dev/null || \
	    { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null; } || \
	    echo 'Chromium cannot be installed here'
	$(BIN)/pytest -m browser -rs tests/report tests/test_site.py

test-lowest:  ## core and laboratory with the oldest versions that are claimed
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/pip install --quiet torch==$(LOWEST_TORCH) -c constraints-lowest.txt -e '.[lab]'
	$(LOWEST)/bin/pip install --quiet -c constraints-lowest.txt pytest hypothesis beartype mpmath pyyaml tensorboard
	$(LOWEST)/bin/pytest -m 'not slow and not gpu and not ray and not slurm' tests/test_extras.py tests/uncertainty \
	    tests/posteriors tests/monitor tests/test_cli.py tests/tables tests/config tests/sweeps/test_description.py

wheel: $(STAMP)  ## both wheels and the source distribution, in dist/
	rm -rf dist
	$(BIN)/pip install --quiet -c constraints.txt build
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m build --wheel --outdir dist packages/epigrok-zoo

pre-commit: $(STAMP)  ## what runs before every commit, on all files
	$(BIN)/pip install --quiet -c constraints.txt pre-commit
	$(BIN)/pre-commit run --all-files

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

clean:
	rm -rf $(VENV) $(LOWEST) demo dist site .pytest_cache .mypy_cache .ruff_cache
