# Everything lives under .venv, which the first target that needs it makes and
# which is made anew when the requirements change.

PYTHON ?= python3
# stestr would run its workers with it, outside of the virtual environment.
unexport PYTHON
# Programs that tests start are no part of --jobs.
unexport MAKEFLAGS
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
CONSTRAINTS := tests/constraints.txt
# The oldest cycle of OpenStack that tests run on; tox -e nova-... has all.
OLDEST := .tox/oldest
OLDEST_CONSTRAINTS := tests/constraints-2025.1.txt
# Watcher runs beside Nova, not with it.
WATCHER := .tox/watcher
WATCHER_CONSTRAINTS := tests/constraints-watcher.txt
# cosmic-ray draws faults; it needs nothing of this project.
MUTANTS := .tox/mutants
# As many workers as there are CPUs, at least two: tests also wait for servers.
# What runs beside the functional tests gets half of them: with all of them the
# same work took a tenth more.
CPUS := $(shell cpus=$$(nproc); echo $$((cpus > 2 ? cpus : 2)))
CONCURRENCY ?= $(if $(filter test functional,$(MAKECMDGOALS)),$(shell expr $(CPUS) / 2),$(CPUS))
# Those on an embedded cloud wait for a third of their time.
FUNCTIONAL_CONCURRENCY ?= $(shell expr $(CPUS) + 1)
# A sandbox is idle for half of its time.  The tests of a class share one: stestr
# gives a class to one worker (group_regex).
SANDBOX_CONCURRENCY ?= 2
# pbr reads the version from git; an unpacked archive, or a machine without git,
# has none.
UNVERSIONED := $(if $(shell git rev-parse HEAD 2>/dev/null),,PBR_VERSION=$(shell sed -n 's/^version = //p' setup.cfg))

SHELL_FILES := devstack/settings devstack/*.sh devstack/lib/* nova_perfvm/measure/checks/queue_script/*.sh \
    tests/contract/*.sh tests/contract/commands/* tests/contract/doubles/*

# Nova's test fixtures read these; the scheduler of Nova 34 runs native threads.
export OS_NOVA_DISABLE_EVENTLET_PATCHING := 1

.DEFAULT_GOAL := help
.PHONY: help demo sandbox test test-sandbox test-long long random matrix tempest lint unit contract functional package oldest storm watcher measure guest fuzz mutants benchmark scheduling-cost savings overgranting recipes docs sample format clean

help:  ## show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 17

demo: $(STAMP)  ## place VMs of both classes on a real Nova in this process
	@$(BIN)/python -m tests.demo

sandbox: $(STAMP)  ## a real OpenStack of separate processes, on pretended SANDBOX_HOSTS
	@$(BIN)/python -m tests.sandbox up $(if $(SANDBOX_HOSTS),--hosts $(SANDBOX_HOSTS))

# Two suites at a time, as the workers of one end at different times; what takes
# longest comes first.
ifneq ($(filter test,$(MAKECMDGOALS)),)
MAKEFLAGS += --jobs=2 --output-sync=target
endif
test: functional unit storm contract lint package  ## lint, unit, contract, functional tests, the package, storms of requests

lint: $(STAMP)  ## ruff, hacking, mypy and bashate
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/flake8 nova_perfvm tests
	$(BIN)/mypy
	$(BIN)/bashate $(SHELL_FILES)

# What is left to the long run, which sets this to nothing.
NIGHTLY ?= --exclude-list tests/nightly.txt

# Tests are dealt out one by one, not by their classes, so that no worker is left
# with more of them.
ALONE := --group-regex '.+'

unit: $(STAMP)  ## unit tests
	$(BIN)/stestr $(ALONE) --test-path ./tests/unit run --concurrency $(CONCURRENCY)

contract: $(STAMP)  ## the DevStack plugin, with DEVSTACK_DIR on a real DevStack
	$(BIN)/stestr $(ALONE) --test-path ./tests/contract run --concurrency $(CONCURRENCY) $(NIGHTLY)

functional: $(STAMP)  ## tests on a real Nova and Placement in the test's process
	$(BIN)/stestr $(ALONE) --test-path ./tests/functional run --concurrency $(FUNCTIONAL_CONCURRENCY) $(NIGHTLY)

package: $(STAMP)  ## sdist and wheel: built, looked into, installed where nothing else is
	$(BIN)/stestr --test-path ./tests/package run --concurrency 1

test-sandbox: $(STAMP)  ## tests on sandboxes that they start and wipe
	$(BIN)/stestr --test-path ./tests/sandbox run --concurrency $(SANDBOX_CONCURRENCY) \
	    $(SANDBOX_TESTS)

# tests/shards.yaml has what that is.  Two suites run at a time, as one keeps half of
# two cores idle.
SHARD ?= 1/1
test-long: $(STAMP)  ## all suites, for hours; SHARD=3/8 runs the third of eight parts
	$(BIN)/python -m tests.shards $(SHARD)

long: $(STAMP)  ## what takes long: storms, faults, a thousand servers on sandboxes; runs that die
	$(BIN)/stestr --test-path ./tests/long run --concurrency 1 $(LONG_TESTS)

# Eight classes that share nothing, each ten minutes to an hour of a CPU.
random: $(STAMP)  ## random operations, and refusals that a plan cures, in the test's process
	$(BIN)/stestr --test-path ./tests/random run --concurrency $(CONCURRENCY) $(RANDOM_TESTS)

matrix: $(STAMP)  ## rows of factors that are all to meet, on Nova with and without us; PERFVM_MATRIX_ROW names one
	$(BIN)/stestr $(ALONE) --test-path ./tests/matrix run --concurrency $(CONCURRENCY) $(MATRIX_TESTS)

tempest: $(STAMP)  ## Tempest's plugin on a sandbox, one that is up or its own
	$(BIN)/python -m tests.tempest $(TEMPEST_ARGUMENTS)

# On sandboxes of their own, whose results are stored with all others.
tempest-%: $(STAMP)
	$(BIN)/python -m tests.tempest --scheme $* --store

oldest: $(OLDEST)/.installed  ## the oldest supported Nova: the scheduler's unit tests, functional tests
	$(OLDEST)/bin/stestr --test-path ./tests/unit/scheduler run --concurrency $(CONCURRENCY)
	$(OLDEST)/bin/stestr $(ALONE) --test-path ./tests/functional run --concurrency $(CONCURRENCY) \
	    $(OLDEST_TESTS)

storm: $(STAMP)  ## PERFVM_STORM_REQUESTS requests at once (20), PERFVM_STORM_ROUNDS times (1)
	$(BIN)/stestr $(ALONE) --test-path ./tests/storm run --concurrency $(CONCURRENCY) $(NIGHTLY)

watcher: $(STAMP) $(WATCHER)/.installed  ## Watcher's decision engine and applier on a real Nova
	PERFVM_WATCHER=$(CURDIR)/$(WATCHER)/bin/python $(BIN)/stestr $(ALONE) \
	    --test-path ./tests/watcher run --concurrency $(CONCURRENCY) $(WATCHER_TESTS)

measure: $(STAMP)  ## benchmarks of a second: run, compared, reported; pages in a browser
	$(BIN)/stestr --test-path ./tests/measure run --concurrency 1 $(MEASURE_TESTS)

guest: $(STAMP)  ## real guests under emulation: collected, judged, cured
	$(BIN)/stestr --test-path ./tests/guest run --concurrency 1 $(GUEST_TESTS)

fuzz: $(STAMP)  ## thousands of odd files, PERFVM_FUZZ_FILES of each kind (1250)
	$(BIN)/stestr --test-path ./tests/fuzz run --concurrency $(CONCURRENCY)

# The rooms that decide.
MUTANT_ROOMS := $(addprefix nova_perfvm/,rules placement scheduler facts)
MUTANT_SEED ?= 1128
MUTANT_NUMBER ?= 300
mutants: $(STAMP) $(MUTANTS)/.installed  ## MUTANT_NUMBER faults (300), drawn by MUTANT_SEED: do unit tests see them?
	$(MUTANTS)/bin/python -m tests.mutants.draw $(MUTANT_SEED) $(MUTANT_NUMBER) \
	    $(MUTANT_ROOMS) >$(MUTANTS)/faults.json
	$(BIN)/python -W ignore -m tests.mutants.reach $(MUTANTS)/reach.json $(MUTANT_ROOMS)
	$(BIN)/python -W ignore -m tests.mutants $(MUTANTS)/faults.json $(MUTANTS)/reach.json

benchmark: $(STAMP)  ## the filter's cost, slots, needless refusals, intervals' coverage, large clouds
	$(BIN)/python -m tests.benchmark.filter_cost
	$(BIN)/python -m tests.benchmark.dry_run_cost
	$(BIN)/python -m tests.benchmark.slots_left
	$(BIN)/python -m tests.benchmark.needless_refusals
	$(BIN)/python -m tests.benchmark.coverage
	$(BIN)/python -m tests.benchmark.proof
	$(BIN)/python -m tests.benchmark.large_cloud

scheduling-cost: $(STAMP)  ## what scheduling costs, on real schedulers, Placement and MariaDB: half an hour
	$(BIN)/python -m tests.benchmark.scheduling $(SCHEDULING_COST_ARGUMENTS)

savings: $(STAMP)  ## hosts that the same VMs need with Nova's weighers and with ours: some minutes
	@$(BIN)/python -m tests.benchmark.savings $(SAVINGS_ARGUMENTS)

overgranting: $(STAMP)  ## how often Placement grants too much, on a MariaDB
	$(BIN)/python -m tests.benchmark.overgranting $(OVERGRANTING_ARGUMENTS)

recipes: $(STAMP)  ## tools that deploy, and others, on what is generated for them; each is named by a variable
	$(BIN)/stestr --test-path ./tests/recipes run --concurrency 1 $(RECIPES_TESTS)

docs: $(STAMP)  ## doc/build/html; a warning is an error
	$(BIN)/sphinx-build -q -W --keep-going -b html doc/source doc/build/html

sample: $(STAMP)  ## write etc/nova_perfvm/perfvm.conf.sample
	$(BIN)/oslo-config-generator --config-file etc/nova_perfvm/config-generator.conf

format: $(STAMP)  ## let ruff format the sources
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## remove what the targets made
	rm -rf $(VENV) .tox releasenotes/notes/reno.cache doc/build .stestr .hypothesis .mypy_cache .ruff_cache

# pip's resolver is left to the constraints, so that every machine tests the
# same versions; what is built is built with those.  What pip says is shown only
# when it fails.
PIP = $(UNVERSIONED) $(BIN)/pip --disable-pip-version-check install \
    --constraint $(CONSTRAINTS)
INSTALL = $(PYTHON) -m venv $(VENV) && \
    $(PIP) pip 'setuptools<81' wheel pbr && \
    $(PIP) --no-build-isolation --editable '.[nova,sandbox,tempest,measure,pages,plan,test,lint,docs]'

# With an older Python pip would speak of conflicting dependencies; a virtual
# environment of another Python would be kept.
PYTHON_REQUIRES := $(shell sed -n 's/^python_requires = >=//p' setup.cfg)
NEW_ENOUGH = import sys; sys.exit(sys.version_info[:2] < tuple(map(int, "$(PYTHON_REQUIRES)".split("."))))

$(STAMP): setup.cfg requirements.txt $(CONSTRAINTS)
	@$(PYTHON) -c '$(NEW_ENOUGH)' || { echo "Python $(PYTHON_REQUIRES) or newer is needed, and" \
	    "$(PYTHON) is $$($(PYTHON) --version 2>&1): name another, as in" \
	    "make $(MAKECMDGOALS) PYTHON=python$(PYTHON_REQUIRES)" >&2; exit 1; }
	@[ ! -e $(VENV) ] || [ "$$($(BIN)/python --version 2>&1)" = "$$($(PYTHON) --version 2>&1)" ] || \
	    rm -rf $(VENV)
	@echo 'Installing what is needed into $(VENV): a minute or two'
	@log=$$(mktemp) && { { $(INSTALL); } >"$$log" 2>&1 || \
	    { cat "$$log"; rm -f "$$log"; exit 1; }; } && rm -f "$$log"
	@# Two suites that start at once would both make it.
	@[ -e .stestr ] || $(BIN)/stestr init
	@touch $@

# Only what these tests import and run, which takes less time than all extras.
OLDEST_PIP = $(UNVERSIONED) $(OLDEST)/bin/pip --disable-pip-version-check install \
    --no-compile --constraint $(OLDEST_CONSTRAINTS)
INSTALL_OLDEST = $(PYTHON) -m venv $(OLDEST) && \
    $(OLDEST_PIP) pip 'setuptools<81' wheel pbr && \
    $(OLDEST_PIP) --no-build-isolation --editable '.[nova,sandbox,measure,plan]' \
    allpairspy hypothesis osc-placement PyMySQL python-openstackclient stestr testtools

$(OLDEST)/.installed: setup.cfg requirements.txt $(OLDEST_CONSTRAINTS)
	@log=$$(mktemp) && { { $(INSTALL_OLDEST); } >"$$log" 2>&1 || \
	    { cat "$$log"; rm -f "$$log"; exit 1; }; } && rm -f "$$log"
	@touch $@

WATCHER_PIP = $(UNVERSIONED) $(WATCHER)/bin/pip --disable-pip-version-check install \
    --no-compile --constraint $(CONSTRAINTS) --constraint $(WATCHER_CONSTRAINTS)
INSTALL_WATCHER = $(PYTHON) -m venv $(WATCHER) && \
    $(WATCHER_PIP) pip 'setuptools<81' wheel pbr && \
    $(WATCHER_PIP) --no-build-isolation --editable '.[watcher,plan]'

$(WATCHER)/.installed: setup.cfg requirements.txt $(CONSTRAINTS) $(WATCHER_CONSTRAINTS)
	@log=$$(mktemp) && { { $(INSTALL_WATCHER); } >"$$log" 2>&1 || \
	    { cat "$$log"; rm -f "$$log"; exit 1; }; } && rm -f "$$log"
	@touch $@

INSTALL_MUTANTS = $(PYTHON) -m venv $(MUTANTS) && \
    $(MUTANTS)/bin/pip --disable-pip-version-check install 'cosmic-ray==8.7.0'

$(MUTANTS)/.installed:
	@log=$$(mktemp) && { { $(INSTALL_MUTANTS); } >"$$log" 2>&1 || \
	    { cat "$$log"; rm -f "$$log"; exit 1; }; } && rm -f "$$log"
	@touch $@
