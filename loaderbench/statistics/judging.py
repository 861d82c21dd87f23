"""Judges the gain of a tried fix, from interleaved pairs of trials, each pair in one round.

Several fixes are tried at a time, and each could appear to gain by chance. Each is therefore judged by a 99% interval,
so with six, at most 6% of steps accept one by chance. Source: Bonferroni's inequality; Dunn 1961, "Multiple Comparisons
Among Means", JASA 56. The printed interval is 95%, as everywhere. `benchmarks/false_alarms.py` measures how often a
judgment is wrong, and how often it misses a gain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loaderbench.records import Config, Judgement, Trial, Verification
from loaderbench.records.words import Answer
from loaderbench.statistics.configurations import rates_by_round
from loaderbench.statistics.intervals import excludes_one, ratio_interval

DECISION_LEVEL = 0.99
FEWEST_PAIRS, MOST_PAIRS = 5, 12
ENOUGH_PAIRS = 3
"""Minimum pairs for a judgment if time runs out before `FEWEST_PAIRS`; their 99% interval is very wide."""

WIDE = 1.08
"""More pairs are measured while the 95% interval, as the ratio of its ends, is wider than this.

A narrower interval around a true gain of 10% excludes 1. `benchmarks/false_alarms.py` prints how often it is found.
"""

SHARE_OF_GAIN = 0.2
"""Maximum interval width as a share of a large gain, both as logarithms: 2.0 (1.86 to 2.15) is enough."""

SMALL = 1.10
"""The answer is `no gain` if the entire interval lies below this ratio."""

WORTH_IT = 1.02
"""A smaller gain is not worth a change, however certain it is."""


def wants_more(found: Judgement) -> bool:
    """Whether another pair would help: the interval is wide for the gain, or a gain is not yet certain enough."""
    ratio = found.ratio
    if ratio is None or ratio.lo is None or ratio.hi is None:
        return True
    almost = found.answer in ("no gain", "undecided") and ratio.lo > 1 and ratio.est >= WORTH_IT
    return almost or ratio.hi / ratio.lo > max(WIDE, ratio.est**SHARE_OF_GAIN)


def judged(verification: Verification, trials: Sequence[Trial], baseline: Config) -> Verification:
    """The verification with the judgment of each tried fix, and of all accepted ones together."""
    tried = [replace(one, judgement=judge(one.config, one.against, trials)) for one in verification.tried]
    return replace(verification, tried=tuple(tried), whole=judge(verification.config, baseline, trials))


def judge(changed: Config, unchanged: Config, trials: Sequence[Trial]) -> Judgement:
    """Compare two configurations over the rounds that have both."""
    after, before = rates_by_round(changed, trials), rates_by_round(unchanged, trials)
    pairs = len(after.keys() & before.keys())
    ratio, strict = ratio_interval(after, before), ratio_interval(after, before, DECISION_LEVEL)
    if ratio is None or strict is None:
        answer: Answer = "failed" if _all_failed(changed, trials) else "undecided"
        return Judgement(answer, None, 0, {"ratio": "no round measured both configurations"})
    if pairs < ENOUGH_PAIRS:
        return Judgement("undecided", ratio, pairs)
    if excludes_one(strict) and ratio.est < 1:
        return Judgement("loss", ratio, pairs)
    if excludes_one(strict) and ratio.est >= WORTH_IT:
        return Judgement("gain", ratio, pairs)
    surely_small = ratio.hi is not None and ratio.hi <= SMALL
    return Judgement("no gain" if surely_small else "undecided", ratio, pairs)


def is_lost(changed: Config, unchanged: Config, trials: Sequence[Trial]) -> bool:
    """Whether a few pairs already show that the changed configuration is slower, or fails."""
    found = judge(changed, unchanged, trials)
    if found.answer == "failed":
        return True
    return found.pairs >= ENOUGH_PAIRS and found.ratio is not None and excludes_one(found.ratio) and found.ratio.est < 1


def _all_failed(config: Config, trials: Sequence[Trial]) -> bool:
    own = [trial for trial in trials if trial.config == config]
    return bool(own) and not any(trial.status == "completed" for trial in own)
