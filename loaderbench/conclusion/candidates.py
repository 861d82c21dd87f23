"""The cause of one configuration, and the remedies to be tried for it."""

from __future__ import annotations

from collections.abc import Sequence

from loaderbench.conclusion.measured import Measured
from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.subject import facts_of, subject_config
from loaderbench.diagnosis.verdict import Subject, decide
from loaderbench.records import Candidate, Config, Environment, Trial, Verdict, varying
from loaderbench.remedies import Diagnosis, candidates_for
from loaderbench.statistics.choice import choose_best
from loaderbench.statistics.configurations import summarise


def subject_of(measured: Measured) -> Config | None:
    """The configuration that the verdict is about; `None` where nothing was measured."""
    configurations = summarise(measured.configs, measured.trials)
    best, _ = choose_best(configurations, measured.baseline, measured.trials, measured.plan.rounds)
    return subject_config(best, configurations)


def candidates(measured: Measured, config: Config, tried: Sequence[Trial]) -> tuple[Candidate, ...] | None:
    """What the cause of `config` calls for, by the sweep's trials and those of remedies.

    `None` where the cause is not known.
    """
    diagnosis = diagnose(measured, config, [*measured.trials, *tried])
    if diagnosis is None or diagnosis.verdict.bound == "unknown":
        return None
    return candidates_for(diagnosis)


def diagnose(measured: Measured, config: Config, trials: Sequence[Trial]) -> Diagnosis | None:
    """What is found for one configuration; `None` where nothing is known of its inside."""
    found = summarise([config], trials)[0]
    facts = facts_of(config, trials, measured.environment)
    if facts is None or found.samples_per_s is None or found.data_wait_share is None:
        return None
    shown = varying(config, measured.plan.axes)
    subject = Subject(shown, found.samples_per_s, found.data_wait_share, is_best=True, facts=facts)
    of_it = [trial for trial in trials if trial.config == config]
    return make_diagnosis(measured, config, decide(subject, measured.consumer, measured.demand, 0, trials=of_it), facts)


def make_diagnosis(measured: Measured, config: Config, verdict: Verdict, facts: Facts) -> Diagnosis:
    """A verdict with all that the remedies want to know of what it is about."""
    options = None if measured.options is None else {**measured.options, **config}
    return Diagnosis(
        verdict,
        facts,
        {**measured.loader, **config},
        measured.loader,
        accelerator=bool(measured.environment.gpus),
        options=options,
        files=measured.dataset.files,
        shared_memory_bytes=_shared_memory_bytes(measured.environment),
        demand=measured.demand if measured.consumer == "emulated" else None,
        profile=measured.kind == "profile",
        traits=next((trial.dataset_traits for trial in measured.trials if trial.dataset_traits), {}),
    )


def _shared_memory_bytes(environment: Environment) -> int:
    """The least of what the machine has, the container may use, and the file system of shared memory holds."""
    known = (environment.memory_total_bytes, environment.memory_limit_bytes, environment.shm_total_bytes)
    return min(found for found in known if found is not None)
