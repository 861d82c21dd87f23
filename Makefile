# `make` runs what CI runs, but for the installation of a browser.
.PHONY: all lint types docs docs-outputs pages test slow format

all: lint types docs test slow

lint:
	uv run ruff check
	uv run ruff format --check

types:
	uv run mypy

docs:
	NO_MKDOCS_2_WARNING=1 uv run --group docs mkdocs build --strict

docs-outputs:
	uv run python docs/quoted_outputs.py

pages:
	uv run python docs/glossary_page.py
	uv run python docs/remedy_pages.py
	uv run python docs/training_rates_page.py

test:
	uv run pytest

slow:
	uv run pytest -m slow

format:
	uv run ruff check --fix
	uv run ruff format
