# What a person types. `make` alone lists the targets. Works on a bare Debian 12 as root: what a target needs from
# Debian is installed by it (`make venv`: python3-venv; the test cluster: see tests/cluster), all else stays in .venv
# and in the cache of the test cluster.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

BIN := .venv/bin
PY := $(BIN)/python
STAMP := .venv/.made-from-lock
PYTEST := $(PY) -m pytest
STAGES := lint types unit integration e2e

.PHONY: help venv test lint types unit integration e2e bench soak demo demo-down docs lock format

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

venv: $(STAMP) ## Make .venv from the lock (nothing happens when it is current)
	@:

$(STAMP): requirements-dev.lock pyproject.toml tests/venv.sh
	@tests/venv.sh .venv
	@touch $@

test: $(STAMP) ## All checks in this order, ending with the first that fails: lint, types, unit, integration, e2e
	@times=; for stage in $(STAGES); do \
	  printf '\n==== %s\n' "$$stage"; start=$$SECONDS; \
	  $(MAKE) "$$stage" || { printf '\nmake test: %s failed after %ss%s\n' "$$stage" $$((SECONDS - start)) \
	    "$${times:+ (before it:$$times)}"; exit 1; }; \
	  times="$$times $$stage $$((SECONDS - start))s"; printf 'times:%s\n' "$$times"; \
	done

lint: $(STAMP) ## Format, linter, import layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-logo

types: $(STAMP) ## mypy --strict
	$(BIN)/mypy

unit: $(STAMP) ## Tests of pure code, seconds
	$(PYTEST) tests/unit $(ARGS)

integration: $(STAMP) ## Tests against a real Slurm, no Kubernetes
	$(PYTEST) tests/integration $(ARGS)

e2e: $(STAMP) ## Tests on the test cluster (kind), or on KUBE=<kubeconfig>
	$(PYTEST) tests/e2e $(ARGS)

bench: $(STAMP) ## Speed and load, as figures and ratios
	$(PY) -m tests.bench $(ARGS)

soak: $(STAMP) ## 10,000 generated specs; then the end-to-end tests ROUNDS times over (default 5), with 100 jobs under chaos
	@KUBESLURM_SOAK=1 $(PYTEST) tests/unit/jobs/test_generated_specs.py
	@for round in $$(seq $${ROUNDS:-5}); do printf '==== round %s\n' "$$round"; \
	  KUBESLURM_SOAK=1 KUBESLURM_CHAOS_JOBS=$${KUBESLURM_CHAOS_JOBS:-100} $(PYTEST) tests/e2e $(ARGS); done

demo: $(STAMP) ## A Kubernetes, a Slurm, 64 nodes with 512 GPUs and a job on all of them; stays up
	@$(PY) -m tests.demo up $(ARGS)

demo-down: $(STAMP) ## Take the demo away, whole
	@$(PY) -m tests.demo down

docs: $(STAMP) ## Write the CRDs, their reference page and the tables of REST calls and pyslurm names anew
	$(PY) -m kubeslurm.crds helm/kubeslurm
	$(PY) -m tests.crd_reference docs/reference/crds.md
	$(PY) -m tests.endpoint_table docs/slurmrest.md
	$(PY) -m tests.pyslurm_reference docs/pyslurm.md

format: $(STAMP) ## Format the code, mend what the linter can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: $(STAMP) ## Write the lock files anew from pyproject.toml (needs the network)
	@tests/lock.sh
