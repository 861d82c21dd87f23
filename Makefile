# `make` runs what CI runs, but for the installation of a browser.
.PHONY: all lint types test slow format

all: lint types test slow

lint:
	uv run ruff check
	uv run ruff format --check

types:
	uv run mypy

test:
	uv run pytest

slow:
	uv run pytest -m slow

format:
	uv run ruff check --fix
	uv run ruff format
