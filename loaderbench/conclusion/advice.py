"""What to change: what the sweep measured, what the cause advises, and what trying it gave."""

from __future__ import annotations

from collections.abc import Sequence

from loaderbench.conclusion.candidates import diagnose
from loaderbench.conclusion.measured import Measured
from loaderbench.records import Best, Configuration, Recommendation
from loaderbench.remedies import Diagnosis, Findings, recommend


def advise(
    measured: Measured,
    configurations: Sequence[Configuration],
    best: Best | None,
    why_no_best: str,
    diagnosis: Diagnosis | None,
) -> tuple[Recommendation, ...]:
    """Ask the remedies."""
    return recommend(
        Findings(
            configurations=configurations,
            trials=measured.trials,
            best=best,
            baseline=measured.baseline,
            axes=measured.plan.axes,
            accelerator=bool(measured.environment.gpus),
            loader=measured.loader,
            why_no_best=why_no_best,
            diagnosis=diagnosis,
            later=_later(measured),
            profile=measured.kind == "profile",
            verification=measured.verification,
            options=measured.options,
        )
    )


def _later(measured: Measured) -> tuple[Diagnosis, ...]:
    """The causes that were left after the remedies accepted so far, in the order they were met."""
    if measured.verification is None:
        return ()
    verification = measured.verification
    trials = [*measured.trials, *verification.trials]
    configs = [tried.against for tried in verification.tried if tried.against != verification.present]
    unique = list({tuple(config.items()): config for config in configs}.values())
    found = (diagnose(measured, config, trials) for config in unique)
    return tuple(diagnosis for diagnosis in found if diagnosis is not None)
