# The README's two commands are `make demo` and `make test`; both set up what they need.
BIN := .venv/bin

.PHONY: demo test setup check peers browser java bench docs clean

demo: .venv/.installed
	$(BIN)/reveil demo

test: setup peers browser java check
	$(BIN)/pytest -n auto

setup: .venv/.ready
peers: .venv-peers/.ready

# What the demo needs, and what development needs besides.
.venv/.installed: pyproject.toml constraints.txt scripts/make-venv
	scripts/make-venv $@ -c constraints.txt -e '.[serve]'
.venv/.ready: .venv/.installed
	scripts/make-venv $@ -c constraints.txt -e '.[dev]'

# pyCANON pins old versions of what we use, so it lives apart and is called as a program.
.venv-peers/.ready: scripts/make-venv constraints-peers.txt
	scripts/make-venv $@ -r constraints-peers.txt

# The console is tested in Debian's Chromium; where it cannot be installed, those tests say so.
browser:
	@scripts/get-browser

# So is Spark where Java is.
java:
	@scripts/get-java

check: setup
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

bench: setup peers
	$(BIN)/reveil bench single

# The documentation site, offline: open docs/_build/index.html.
docs: setup
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build

clean:
	rm -rf .venv .venv-peers demo-output docs/_build docs/reference .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
