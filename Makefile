# Everything runs from here; set-up happens once, by itself. `make` alone lists the commands.
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || echo python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
TOOLS := $(VENV)/.tools
TORCH := $(shell sed -n 's/^torch==/torch==/p' constraints.txt)
# Elsewhere on Linux, PyPI's torch is the CUDA build: name PyTorch's CPU wheel index here to get the small one.
TORCH_INDEX_URL ?=
# Quiet twice: errors only. Some machines have hundreds of warnings about places where packages are not.
PIP_INSTALL := $(BIN)/python -m pip install -qq --disable-pip-version-check --constraint constraints.txt

# One thread a process, no busy waiting: several processes share the machine. No telemetry, no model hub.
export OMP_NUM_THREADS := 1
export OMP_WAIT_POLICY := PASSIVE
export DVC_NO_ANALYTICS := 1
export DO_NOT_TRACK := 1
export PREFECT_SERVER_ANALYTICS_ENABLED := false
export MLFLOW_DISABLE_TELEMETRY := true
export HF_HUB_DISABLE_TELEMETRY := 1
export HF_HUB_OFFLINE := 1
export TOKENIZERS_PARALLELISM := false

.DEFAULT_GOAL := help
.PHONY: help run serve test check clean
.DELETE_ON_ERROR:

help: ## List the commands
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST)

run: $(READY) ## The whole recipe on the active profile; only stale stages run
	@$(BIN)/python -m flows.post_training $(ARGS)

serve: $(READY) ## Prefect with the recipe as a form, and MLflow, on this machine until Ctrl-C
	@$(BIN)/python -m flows.serve $(ARGS)

test: $(TOOLS) ## All tests
	@$(BIN)/python -m pytest $(ARGS)

check: $(TOOLS) ## Style, format, types, layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

clean: ## Remove everything that a run or set-up made; models/, sources and parameters stay
	@rm -rf $(VENV) .work .dvc/cache .dvc/tmp data checkpoints metrics reports mlruns mlflow.db* *.egg-info
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
	@rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(READY): pyproject.toml constraints.txt
	@echo "Setting up $(VENV) (once, some minutes)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP_INSTALL) $(if $(TORCH_INDEX_URL),--extra-index-url $(TORCH_INDEX_URL)) $(TORCH)
	@$(PIP_INSTALL) --editable .
	@touch $@

$(TOOLS): $(READY)
	@echo "Adding the tools for tests, and verl"
	@$(PIP_INSTALL) --editable '.[dev,verl]'
	@touch $@
