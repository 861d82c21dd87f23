"""Memory of this machine, even if `/proc` is hidden from this process."""

from __future__ import annotations

import os

import psutil


def total_bytes() -> int | None:
    """Physical memory; `None` if the system does not say."""
    try:
        return int(psutil.virtual_memory().total)
    except Exception:  # psutil needs /proc on Linux, and passes on any error of reading it
        return _pages("SC_PHYS_PAGES")


def available_bytes() -> int | None:
    """Memory available to programs without swapping; `None` if the system does not say."""
    try:
        return int(psutil.virtual_memory().available)
    except Exception:
        return _pages("SC_AVPHYS_PAGES")


def _pages(name: str) -> int | None:
    """The size of a number of pages. Source: sysconf(3); glibc asks the kernel by sysinfo(2)."""
    try:
        return os.sysconf(name) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None
