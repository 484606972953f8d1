# `make regression` and `make test` are all it takes; both set .venv up first, once.
# Scenarios that need a Docker engine are listed as blocked where none can be had, and the run goes by the rest.
# ARGS hands further words on:  make regression ARGS="--device subcloud1"   make test ARGS="-k inventory"
# TESTS names what `make test` runs:  make test TESTS=tests/images

BIN := .venv/bin
# Tests wait for a third of their time, for services and commands: half as many processes again as there are cores.
JOBS ?= $(shell echo $$(( ($$(nproc) * 3 + 1) / 2 )))
ARGS ?=
TESTS ?= tests

# Where this is set, each of the many processes of a run compiles the harness anew: a third of a short run.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup programs regression test lint bench fuzz storm clean

help:
	@echo "make regression   flash every kind of image on the emulated lab, judge every report, print a summary"
	@echo "make test         the harness's own tests"
	@echo "make lint         ruff and mypy"
	@echo "make bench        what the harness costs, beside its goals"
	@echo "make fuzz         a million damaged inputs for every reader of untrusted bytes (nightly)"
	@echo "make storm        200 kills of the harness in the middle of runs; nothing may be left (nightly)"
	@echo "make setup        only set .venv up"
	@echo "make programs     install what the tests run for real, as root: docker.io, docker-registry, skopeo, chromium, sudo, IPMI"
	@echo "make clean        remove what runs, tests and builds have left; .venv stays"

setup:
	@scripts/bootstrap

programs: setup
	@$(BIN)/python scripts/programs

regression: setup
	@$(BIN)/hil run testplans/regression --allow-blocked registry_engine $(ARGS)

test: setup
	@$(BIN)/pytest -n $(JOBS) --dist=worksteal --import-mode=importlib $(TESTS) $(ARGS)

lint: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

bench: setup
	@$(BIN)/python -m benchmarks $(ARGS)

fuzz: setup
	@$(BIN)/python tests/fuzz/nightly.py $(ARGS)

storm: setup
	@$(BIN)/python tests/storm/nightly.py $(ARGS)

clean:
	@rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis build ./*.egg-info
	@find harness tests testplans benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
	@find reports -mindepth 1 ! -name README.md -delete
