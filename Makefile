# make demo   set up, then replay a log (LOG=path, or a generated workload)
# make test   set up, then every test
# make lint   ruff, mypy
# make bench  engine speed, recorded and as ratios
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
LOG ?=
NATIVE := CMakeLists.txt $(wildcard simulator/cpp/*)

.PHONY: demo test lint bench setup sanitize clean
setup: $(VENV)/.installed

$(VENV)/.venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "foretime needs Python 3.11 or newer; name one with: make PYTHON=python3.12"; exit 2; }
	@$(PYTHON) -m venv $(VENV) || $(PYTHON) -m virtualenv $(VENV) || \
	  { echo "python3 can't make a virtual environment: install python3-venv (Debian) or virtualenv"; exit 2; }
	@touch $@

$(VENV)/.installed: $(VENV)/.venv pyproject.toml $(NATIVE)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_FLAGS) --editable '.[dev]'
	@touch $@

demo: setup
	$(BIN)/foretime replay $(if $(LOG),$(LOG),--generate lublin2003)

test: setup lint
	$(BIN)/python -m pytest

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: setup
	$(BIN)/python -m pytest tests/benchmarks --benchmark-only

clean:
	rm -rf $(VENV) build .mypy_cache .pytest_cache .ruff_cache .hypothesis .benchmarks
