# `make` runs what CI runs, but for the installation of a browser.
.PHONY: all lint types test format

all: lint types test

lint:
	uv run ruff check
	uv run ruff format --check

types:
	uv run mypy

test:
	uv run pytest

format:
	uv run ruff check --fix
	uv run ruff format
