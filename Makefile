# make demo   set up, then replay a log (LOG=path, or a generated workload)
# make test   set up, then every test that needs no Slurm and no PBS
# make search  every property test with many times its examples (TIMES=20 TESTS=tests SEED=1)
# make fuzz  every parser of outside text, by coverage (SECONDS=60 each, TARGETS="swf table")
# make test-slurm  set up, then the tests on live Slurm clusters: as root, some ten minutes
#                  (FORETIME_SLURM_RELEASES=all: every test on each of the releases, not on two)
# make slurm-matrix  those on all releases, then docs/slurm_releases.md from what came of them
# make test-pbs  set up, build OpenPBS once, then the tests on live PBS servers: as root
# make packages  sdist, wheels, .deb and .rpm in dist/: as root, with debootstrap (SUITES=bookworm)
# make lock  versions and hashes of what packages ship and are built with, anew: the newest that fit
# make test-packages  make packages, then try each in a clean root
# make release-check  whether this checkout can be released: all of the above that tests, too
# make lint   ruff, mypy, import-linter, clang-format, clang-tidy
# make bench  what everything costs, in one table with the goals; saved in .benchmarks
# make sanitize  the native core under the address and undefined-behaviour sanitizers
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
LOG ?=
TIMES ?= 20
TESTS ?= tests
SECONDS ?= 60
TARGETS ?=
SUITES ?= bookworm trixie
SEED ?= $(strip $(shell od -An -N4 -tu4 /dev/urandom))
NATIVE := CMakeLists.txt $(wildcard simulator/cpp/*/*.?pp simulator/cpp/*/*/*.?pp)

LIGHT := not real_slurm and not real_pbs and not packages

.PHONY: demo test search fuzz test-slurm slurm-experiments slurm-tests slurm-matrix test-pbs packages lock test-packages try-packages release-check lint bench setup sanitize clean
setup: $(VENV)/.installed

$(VENV)/.venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "foretime needs Python 3.11 or newer; name one with: make PYTHON=python3.12"; exit 2; }
	@$(PYTHON) -c 'import os, sys, sysconfig as s; \
	  sys.exit(not os.path.exists(os.path.join(s.get_path("include"), "Python.h")))' || \
	  { echo "python3 has no headers to build with: install python3-dev (Debian) or python3-devel"; exit 2; }
	@command -v $${CXX:-c++} >/dev/null || \
	  { echo "there is no C++ compiler: install g++, or name yours with: CXX=... make"; exit 2; }
	@echo "setting up $(VENV): some minutes, once"
	@$(PYTHON) -m venv $(VENV) || $(PYTHON) -m virtualenv $(VENV) || \
	  { echo "python3 can't make a virtual environment: install python3-venv (Debian) or virtualenv"; exit 2; }
	@touch $@

# An editable installation knows each module by its place: another list of rooms is installed anew.
ROOMS := $(VENV)/.rooms-$(firstword $(shell find simulator sidecar -type d -not -name __pycache__ | sort | cksum))

$(ROOMS): $(VENV)/.venv
	@rm -f $(VENV)/.rooms-*
	@touch $@

$(VENV)/.installed: $(VENV)/.venv $(ROOMS) pyproject.toml simulator/studies/pyproject.toml $(NATIVE)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_FLAGS) --editable '.[dev]' \
	  --editable simulator/studies
	@touch $@

demo: setup
	$(BIN)/foretime replay $(if $(LOG),$(LOG),--generate lublin2003 --jobs 2000)

test: setup lint
	$(BIN)/python -m pytest --numprocesses logical --maxprocesses 4 --dist worksteal \
	  --benchmark-skip -m '$(LIGHT)'

# What make prints has the seed, which is another at every run.
search: setup
	$(BIN)/python -m pytest --search $(TIMES) --hypothesis-seed=$(SEED) --timeout 0 \
	  --benchmark-skip -m '$(LIGHT)' $(TESTS)

fuzz: setup
	$(BIN)/python -m tests.fuzz.run $(SECONDS) $(TARGETS)

test-slurm: setup
	$(MAKE) --jobs 2 --output-sync=target slurm-experiments slurm-tests

# One process begins all experiments together, and mostly waits for them.
JUNIT := build/slurm-results
slurm-experiments: setup
	$(BIN)/python -m pytest tests/slurm -m 'real_slurm and experiment' --junitxml=$(JUNIT)/experiments.xml

# A file's tests stay together, as they may share a cluster; so do those on PBS.
LIVE := --dist loadfile --numprocesses
slurm-tests: setup
	$(BIN)/python -m pytest tests/slurm -m 'real_slurm and not experiment' $(LIVE) 3 \
	  --junitxml=$(JUNIT)/tests.xml

slurm-matrix: setup
	FORETIME_SLURM_RELEASES=all $(MAKE) test-slurm || true
	$(BIN)/python -m tests.slurm.harness.release_matrix $(JUNIT)/*.xml

# Where OpenPBS can't be built for want of its source, or root, the script and each test say so.
test-pbs: setup
	tests/pbs/make_openpbs.sh || [ $$? -eq 3 ]
	$(BIN)/python -m pytest tests/pbs -m real_pbs $(LIVE) 2

packages: setup
	$(BIN)/python contrib/packages/make_packages.py $(SUITES)

lock: setup
	$(BIN)/python contrib/packages/locks.py

test-packages: packages
	$(MAKE) try-packages

try-packages: setup
	$(BIN)/python -m pytest tests/packages -m packages

release-check: setup
	$(BIN)/python contrib/packages/release_check.py
	$(MAKE) test test-slurm test-pbs test-packages
	@echo "ready: git tag --annotate v$$($(BIN)/foretime --version | cut -d ' ' -f 2), and publish dist/"

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo --no-cache
	$(BIN)/clang-format --dry-run --Werror $(filter %.cpp %.hpp,$(NATIVE))
	@# Where nanobind was when the core was built may be gone.
	printf '%s\n' $(filter %.cpp,$(NATIVE)) | xargs -n 1 -P "$$(nproc)" $(BIN)/clang-tidy --quiet -p build \
	  --extra-arg=-isystem"$$($(BIN)/python -m nanobind --include_dir)"

bench: setup
	@mkdir -p .benchmarks
	$(BIN)/python -m pytest tests/benchmarks --benchmark-only --benchmark-quiet \
	  --benchmark-json=.benchmarks/latest.json

# A second, plain install beside the editable one; -S keeps the editable one's import hook out.
SANITIZED := build/sanitize
SANITIZED_PYTHON := $(BIN)/python -S
sanitize: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade \
	  $(filter-out --config-settings=%,$(PIP_FLAGS)) --target $(SANITIZED)/site \
	  --config-settings=build-dir=$(SANITIZED)/cmake \
	  --config-settings=cmake.define.FORETIME_SANITIZE=ON \
	  --config-settings=cmake.define.FORETIME_WERROR=ON .
	LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libubsan.so) \
	  $$($(CXX) -print-file-name=libstdc++.so)" \
	  ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 FORETIME_SANITIZED=1 \
	  PYTHONPATH="$(SANITIZED)/site:$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" \
	  $(SANITIZED_PYTHON) -m pytest --dist worksteal --tx '2*popen//python=$(SANITIZED_PYTHON)' \
	  --capture=sys -p no:cacheprovider tests/sim/engine tests/sim/logs/test_swf.py

clean:
	rm -rf $(VENV) build simulator/foretime_sim/_core.pyi .mypy_cache .pytest_cache .ruff_cache .hypothesis .benchmarks
