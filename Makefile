# The two commands: `make demo` and `make test`. Both set up .venv on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: demo test docs results format clean

# One stamp per set of dependencies: reinstalled only when the project's metadata changes.
$(VENV)/.installed: pyproject.toml constraints.txt src/accord/__init__.py
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --constraint constraints.txt --editable .
	touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(PIP) install --quiet --constraint constraints.txt --editable '.[test]'
	touch $@

demo: $(VENV)/.installed
	$(BIN)/accord demo --force

test: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 2 -m "not slow"

$(VENV)/.installed-docs: $(VENV)/.installed
	$(PIP) install --quiet --constraint constraints.txt --editable '.[docs]'
	touch $@

# The site, in docs/_build/html. Its examples are run; a warning or a failing example is an error.
docs: $(VENV)/.installed-docs
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

# The paper's tables and figures in up to two hours, and the study of shifts in a quarter of an
# hour; stopped, it goes on where it was.
results: $(VENV)/.installed
	$(BIN)/accord reproduce all --folder results --records .records
	$(BIN)/accord reproduce shift --folder results/shift --records .records
	$(BIN)/python -m accord.paper.page README.md results

format: $(VENV)/.installed-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) docs/_build docs/_generated .mypy_cache .pytest_cache .ruff_cache
