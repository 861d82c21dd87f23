"""A run from suite to verdict: search proposes, runner measures, the conclusion is drawn and the report written."""

from loaderbench.session.listener import Listener, Silent
from loaderbench.session.resuming import overrides_of
from loaderbench.session.running import SessionResult, run, run_suite

__all__ = ["Listener", "SessionResult", "Silent", "overrides_of", "run", "run_suite"]
