"""Keeps `index.html`, the list of the runs of a folder, up to date, and never writes over anybody else's."""

from __future__ import annotations

import logging
import os
import re
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from loaderbench.errors import printable
from loaderbench.report.index import LIST_OF_RUNS, build_index
from loaderbench.report.index_html import render_index
from loaderbench.run_list import DEFAULT_FOLDER, list_runs

INDEX_FILE = "index.html"
_HEAD_BYTES = 4_096
_OURS = re.compile(rf'<meta name="generator" content="loaderbench [^"<>]*, {LIST_OF_RUNS}">'.encode())
_LOG = logging.getLogger("loaderbench")


def update_index(run_folder: Path) -> Path | None:
    """Draw the list of the runs beside this one anew, where there is one or the folder is where runs land by default.

    `None` where nothing was written. That it cannot be written is logged as one line and is no error: the run is safe.
    """
    parent = run_folder.resolve().parent
    try:
        if not _may_write(parent):
            return None
        return _write(parent / INDEX_FILE, render_index(build_index(list_runs(parent), version("loaderbench"))))
    except Exception as error:  # a list is no reason to lose a run that was measured for hours
        said = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
        _LOG.warning("%s", printable(f"loaderbench: {parent / INDEX_FILE}: was not written: {said}"))
        return None


def _may_write(parent: Path) -> bool:
    """Only over a list of ours, and for the first time only in the folder of all runs."""
    file = parent / INDEX_FILE
    if not os.path.lexists(file):
        return parent == DEFAULT_FOLDER.resolve()
    return _is_ours(file)


def _is_ours(file: Path) -> bool:
    """Whether its head names loaderbench as what made this list; a page of a run is another thing."""
    if file.is_symlink() or not file.is_file():
        return False
    with file.open("rb") as opened:
        return _OURS.search(opened.read(_HEAD_BYTES)) is not None


def _write(file: Path, text: str) -> Path:
    """At once or not at all; of two runs that end together each has a part of its own."""
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(file)
    except OSError:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise
    return file
