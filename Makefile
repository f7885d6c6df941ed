# Two commands on a fresh machine: `make demo` and `make test`. Python 3.11 or later.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test check clean

demo: $(VENV)/installed
	$(BIN)/avrt demo

test: $(VENV)/installed-dev
	BIN=$(BIN) tools/check
	BIN=$(BIN) tools/check slow

check: $(VENV)/installed-dev
	BIN=$(BIN) tools/check fast

$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable . --constraint constraints.txt
	touch $@

$(VENV)/installed-dev: $(VENV)/installed
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]' --constraint constraints.txt
	touch $@

clean:
	rm -rf $(VENV) out build *.egg-info
