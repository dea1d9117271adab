# Everything runs from here; set-up happens once, by itself. `make` alone lists the commands.
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || echo python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
VENV_VLLM := .venv-vllm
READY_VLLM := $(VENV_VLLM)/.ready
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
.PHONY: help run serve ablation real-input test test-vllm check clean
.DELETE_ON_ERROR:

help: ## List the commands
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST)

run: $(READY) ## The whole recipe on the active profile; only stale stages run
	@$(BIN)/python -m flows.post_training $(ARGS)

serve: $(READY) ## Prefect with the recipe as a form, and MLflow, on this machine until Ctrl-C
	@$(BIN)/python -m flows.serve $(ARGS)

ablation: $(READY) ## What each part of the RL recipe is worth: nine variants, three seeds
	@$(BIN)/python -m flows.ablation $(ARGS)

real-input: $(READY) ## Data synthesis on the World Factbook and a folder of office files, with SmolLM2 on this CPU
	@infra/real_input/run.sh

test: $(TOOLS) ## All tests
	@$(BIN)/python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder $(ARGS)

test-vllm: $(READY_VLLM) ## verl with its own vLLM rollout on this CPU, in an environment of its own (3.6 GB)
	@$(VENV_VLLM)/bin/python -m pytest -m vllm tests/verl/test_verl_vllm.py tests/generation/test_vllm.py $(ARGS)

check: $(TOOLS) ## Style, format, types, layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

clean: ## Remove everything that a run or set-up made; models/, sources and parameters stay
	@rm -rf $(VENV) $(VENV_VLLM) .work .dvc/cache .dvc/tmp data checkpoints metrics reports ablation mlruns mlflow.db* *.egg-info
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
	@$(PIP_INSTALL) --editable '.[dev,verl,gguf,lm-eval]'
	@touch $@

# The file lists all that is needed; what the packages themselves ask for does not resolve together.
$(READY_VLLM): constraints-vllm.txt
	@echo "Setting up $(VENV_VLLM) (once, some minutes)"
	@$(PYTHON) -m venv $(VENV_VLLM)
	@$(VENV_VLLM)/bin/python -m pip install -qq --disable-pip-version-check --no-deps \
		$(if $(TORCH_INDEX_URL),--extra-index-url $(TORCH_INDEX_URL)) --requirement constraints-vllm.txt
	@touch $@
