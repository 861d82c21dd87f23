"""What a run is made under: known before its first trial, and part of whatever is concluded from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from importlib.metadata import version

from loaderbench.conclusion import Measured, candidates, subject_of
from loaderbench.plan import Plan
from loaderbench.records import Environment, Trial
from loaderbench.session.bad_images import note_left_out
from loaderbench.session.inputs import Inputs
from loaderbench.session.rounds import Measurements
from loaderbench.session.verifying import Psnr, Verifier
from loaderbench.suite import LoadedSuite

NOT_ASKED = "trying remedies was switched off"


@dataclass(frozen=True)
class Conditions:
    """Suite, machine, data, plan and consumer. `cpu_percent_before` is what other programs used of all CPUs."""

    loaded: LoadedSuite
    environment: Environment
    inputs: Inputs
    plan: Plan
    consumer: str
    cpu_percent_before: float
    started_at: str

    def measured(self, found: Measurements) -> Measured:
        """All that is known so far."""
        suite, plan = self.loaded.suite, self.plan
        return Measured(
            name=suite.name,
            suite=suite.model_dump(mode="json"),
            environment=self.environment,
            dataset=self.inputs.summary,
            plan=plan.summary(),
            configs=plan.configurations,
            baseline=plan.baseline,
            baseline_why=plan.baseline_why,
            consumer=self.consumer,
            trials=found.trials,
            twins=found.twins,
            cpu_percent_before=self.cpu_percent_before,
            started_at=self.started_at,
            finished_at=now(),
            complete=found.why_partial is None,
            notes=[*([found.why_partial] if found.why_partial else []), *note_left_out(self.inputs.summary)],
            version=version("loaderbench"),
            suite_file=str(self.loaded.file),
            overrides={".".join(map(str, found.path)): found.value for found in self.loaded.overrides},
            rungs=found.rungs,
            no_rungs=found.no_rungs,
            verification=found.verification,
            no_verification=found.no_verification,
        )

    def verifier(self, psnr: Psnr, trials: Sequence[Trial], until_s: float) -> tuple[Verifier | None, str]:
        """What tries remedies for the configuration that the verdict is about; or why nothing does."""
        if not self.loaded.suite.measure.verify:
            return None, NOT_ASKED
        so_far = self.measured(Measurements(trials=list(trials)))
        present = subject_of(so_far)
        if present is None:
            return None, "nothing was measured"
        strict = self.loaded.suite.measure.budget is not None
        propose = partial(candidates, so_far)
        return Verifier(self.plan, present, propose, psnr, until_s=until_s, strict=strict, sweep=trials), ""


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
