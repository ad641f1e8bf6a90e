# `make run` and `make test` set everything up; a second call sets nothing up again.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
QUICKSTART := runs/quickstart

.PHONY: run test test-slow fuzz check bench docs clean

run: $(VENV)/.ready
	@if [ -f $(QUICKSTART)/policy.safetensors ]; then echo "$(QUICKSTART) is trained; remove it to train again."; \
	elif [ -d $(QUICKSTART) ]; then $(BIN)/iddm train --resume $(QUICKSTART); \
	else $(BIN)/iddm train HalfCheetah-v5 --method iddm --steps 42000 --evaluations 5 --out $(QUICKSTART); fi
	$(BIN)/iddm report $(QUICKSTART) --episodes 20 --out report.html

test: $(VENV)/.ready
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

test-slow: $(VENV)/.ready
	$(BIN)/python -m pytest -m slow

# Changed files by the thousand; SEED chooses which.
SEED ?= 0
fuzz: $(VENV)/.ready
	$(BIN)/python -m tests.fuzz --seed $(SEED)

check: $(VENV)/.ready
	$(BIN)/ruff format --check src tests benchmarks examples website
	$(BIN)/ruff check src tests benchmarks examples website
	$(BIN)/basedpyright
	$(BIN)/lint-imports

bench: $(VENV)/.ready
	$(BIN)/python benchmarks/breakdown.py
	$(BIN)/python benchmarks/throughput.py

# The site, in site/: every link is checked, and a warning is an error.
docs: $(VENV)/.ready-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict -f website/mkdocs.yml

$(VENV)/.ready-docs: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[docs]"
	@touch $@

# Set-up, once: the stamp is newer than pyproject.toml exactly when the environment fits it.
$(VENV)/.ready: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("iddm needs Python 3.11 or newer; name one with: make PYTHON=python3.11 ...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	@touch $@

clean:
	rm -rf $(VENV) .venv-peers site
