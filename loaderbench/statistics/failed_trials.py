"""Counts failed trials of a configuration in two runs or versions, and tests whether the later one fails more often.

One failure can be chance, such as a moment without free memory. Source: Fisher's exact test; Fisher, "On the
Interpretation of Chi-squared from Contingency Tables, and the Calculation of P", JRSS 85, 1922.
"""

from __future__ import annotations

from collections.abc import Sequence

from loaderbench.records import Config, FailedTrials, FailureCount, Trial

_NOT_TRIED = "pruned"  # the kind of failure of a trial that never ran


def was_tried(trial: Trial) -> bool:
    """Whether the trial ran, completed or not."""
    return trial.failure is None or trial.failure.kind != _NOT_TRIED


def failed_trials(config: Config, before: Sequence[Trial], after: Sequence[Trial], level: float) -> FailedTrials | None:
    """The failed trials among those of a configuration; `None` if none failed. `level` is that of the intervals."""
    then, now = _count(before), _count(after)
    if not then.failed and not now.failed:
        return None
    more_often = _chance_of_as_many(then, now) < (1 - level) / 2
    return FailedTrials(config=config, before=then, after=now, more_often=more_often)


def only_some_failed(found: FailureCount) -> bool:
    """Whether some trials failed and others completed."""
    return 0 < found.failed < found.trials


def failures_in_words(found: FailedTrials) -> str:
    """`later: 5 of 12 trials failed (worker killed)`; empty unless a run or version has completed trials as well."""
    sides = (("earlier", found.before), ("later", found.after))
    return ", ".join(f"{name}: {_in_words(one)}" for name, one in sides if only_some_failed(one))


def _in_words(found: FailureCount) -> str:
    kinds = ", ".join(kind.replace("_", " ") for kind in found.kinds)
    return f"{found.failed} of {found.trials} trials failed ({kinds})"


def _count(trials: Sequence[Trial]) -> FailureCount:
    tried = [trial for trial in trials if was_tried(trial)]
    failed = [trial for trial in tried if trial.status != "completed"]
    kinds = dict.fromkeys(trial.failure.kind if trial.failure else trial.status for trial in failed)
    return FailureCount(failed=len(failed), trials=len(tried), kinds=tuple(kinds))


def _chance_of_as_many(before: FailureCount, after: FailureCount) -> float:
    """The probability of at least as many failures of the later one, if trials of both fail equally often."""
    from scipy.stats import fisher_exact  # takes a second to import

    table = [[one.failed, one.trials - one.failed] for one in (after, before)]
    return float(fisher_exact(table, alternative="greater").pvalue)
