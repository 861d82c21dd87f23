"""Runs a suite from start to verdict: propose trials, measure them, draw the conclusion, and write the report."""

from loaderbench.session.listener import Listener
from loaderbench.session.resuming import overrides_of
from loaderbench.session.running import SessionResult, run, run_suite
from loaderbench.session.side_by_side import run_side_by_side
from loaderbench.session.sweep import MoreRounds
from loaderbench.session.versions import opened_versions, same_code

__all__ = [
    "Listener",
    "MoreRounds",
    "SessionResult",
    "opened_versions",
    "overrides_of",
    "run",
    "run_side_by_side",
    "run_suite",
    "same_code",
]
