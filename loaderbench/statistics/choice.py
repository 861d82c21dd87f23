"""Chooses one of the tied configurations, and computes its gain vs the baseline."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from loaderbench.loaders import worker_count
from loaderbench.records import Baseline, Best, Config, Configuration, Dropped, Scalar, Trial, config_label
from loaderbench.records.words import count
from loaderbench.statistics.configurations import PRACTICAL_TIE, rates_by_round, ratio_of
from loaderbench.statistics.intervals import FEWEST_ROUNDS, is_below_one

LEAST_SAVED_BYTES = 50_000_000  # printed as 0.1 GB; savings below this do not count
_DIGITS = 2  # significant digits of a memory reading in comparisons of configurations
_NOT_COMPARED = "not among the compared configs"
_LIMIT = f"{PRACTICAL_TIE * 100:.0f}%"
_REST_SLOWER = "all others that were measured are significantly slower"


def choose_best(
    configurations: Sequence[Configuration],
    baseline: Config,
    trials: Sequence[Trial],
    planned_rounds: int,
    loader: Mapping[str, Any],
    *,
    finals: Sequence[Trial] = (),
    dropped: Sequence[Dropped] = (),
) -> tuple[Best | None, str]:
    """Choose the cheapest of the fastest, or say why there is none. `loader` are the fixed arguments.

    `trials` are those of the sweep, `finals` those of its final, and `dropped` the configurations that the sweep
    stopped measuring.

    The cheapest has the fewest workers, then the least GPU memory, then the least host memory. Among equals, the first
    in the sweep is chosen.
    """
    tied = [found for found in configurations if found.tied_with_best]
    chosen = min(tied, key=lambda found: _cost(found, loader), default=None)
    if chosen is None or chosen.samples_per_s is None:
        return None, _no_winner(configurations, trials, planned_rounds)
    gain = None if chosen.config == baseline else ratio_of(chosen.config, baseline, trials)
    out = [found.config for found in dropped if found.than is not None]
    left = [found for found in configurations if found.config not in out]
    why = why_chosen(chosen, left, [*trials, *finals], loader, of=len(configurations))
    return Best(
        config=chosen.config,
        samples_per_s=chosen.samples_per_s,
        data_wait_share=chosen.data_wait_share,
        ties=tuple(found.config for found in tied if found is not chosen),
        why_this_one=". ".join([why, *_unmeasured_note(dropped, len(configurations))]),
        gain=gain,
        not_measured={} if gain else {"gain": _no_gain(chosen.config, baseline)},
    ), ""


def describe_baseline(configurations: Sequence[Configuration], config: Config, why: str) -> Baseline:
    """Describe the starting configuration, which is measured like any other, unless two versions are compared."""
    found = next((c for c in configurations if c.config == config), None)
    reasons = found.not_measured if found else dict.fromkeys(("samples_per_s", "data_wait_share"), _NOT_COMPARED)
    is_tied = found is not None and found.tied_with_best
    return Baseline(
        config=config,
        samples_per_s=found.samples_per_s if found else None,
        data_wait_share=found.data_wait_share if found else None,
        ties=tuple(c.config for c in configurations if c.tied_with_best and c is not found) if is_tied else (),
        why_this_one=why,
        not_measured={name: why for name, why in reasons.items() if name in Baseline.__annotations__},
    )


_CRITERIA = ("least GPU memory", "smallest batch", "least host memory")
"""Criteria for configurations with the same number of workers."""


def _cost(found: Configuration, loader: Mapping[str, Any]) -> tuple[float, ...]:
    batch: Scalar = found.config.get("batch_size", 0)
    return (
        float(worker_count(found.config, loader) or 0),  # without an argument, torch's default of 0 applies
        _rounded(found.gpu_memory_used_bytes),
        float(batch) if isinstance(batch, int | float) and found.gpu_memory_used_bytes is None else 0.0,
        _rounded(found.pss_bytes),
    )


def _rounded(size: int | None) -> float:
    """Round a reading, so differences of a few percent do not count; a missing one is infinite and comes last."""
    if size is None:
        return math.inf
    return round(size, _DIGITS - 1 - math.floor(math.log10(size))) if size else 0.0


def _no_winner(configurations: Sequence[Configuration], trials: Sequence[Trial], planned_rounds: int) -> str:
    rounds = max((len(rates_by_round(found.config, trials)) for found in configurations), default=0)
    if not rounds:
        return "no config was measured"
    if planned_rounds < FEWEST_ROUNDS:
        return f"only {count(rounds, 'round')}: a best config needs {FEWEST_ROUNDS} or more (--rounds {FEWEST_ROUNDS})"
    return f"no config completed {FEWEST_ROUNDS} rounds; the most was {rounds}"


def _no_gain(config: Config, baseline: Config) -> str:
    return "this is the baseline" if config == baseline else "never measured in the same round as the baseline"


def _unmeasured_note(dropped: Sequence[Dropped], of: int) -> list[str]:
    count = sum(not found.rounds for found in dropped)
    return [f"{count} of {of} configs were not measured"] if count else []


def why_chosen(
    chosen: Configuration,
    configurations: Sequence[Configuration],
    trials: Sequence[Trial],
    loader: Mapping[str, Any],
    *,
    of: int = 1,
) -> str:
    """Compare the chosen configuration with the others, and name those that were faster in too few rounds.

    `of` counts all configurations; `configurations` are those that the sweep has not excluded.
    """
    if len(configurations) == 1:
        return "The only config" if of == 1 else "Fastest; all others are significantly slower"
    others = [found for found in configurations if found.samples_per_s is not None and found is not chosen]
    if not others:
        excluded = len(configurations) < of
        return f"Fastest; {_REST_SLOWER}" if excluded else "The only config that was measured"
    tied = [found for found in configurations if found.tied_with_best]
    top = min(tied, key=_rank)
    faster = [found for found in others if _rank(found) < _rank(top)]
    if len(tied) > 1:
        apart = [found for found in others if not found.tied_with_best and found not in faster]
        sentences = [
            _among_ties(chosen, top, tied, trials),
            *_savings(chosen, tied, loader),
            *_undecided_others(top, apart, trials),
        ]
    else:
        sentences = [_why_untied(top, others, faster, trials)]
    return ". ".join([*sentences, *(_too_few_rounds(found, trials) for found in faster)])


def _among_ties(
    chosen: Configuration, top: Configuration, tied: Sequence[Configuration], trials: Sequence[Trial]
) -> str:
    ratios = [ratio_of(found.config, top.config, trials) for found in tied]
    close = all(ratio is not None and ratio.est >= 1 - PRACTICAL_TIE for ratio in ratios)
    how = f"tied within {_LIMIT}" if close else "that further rounds did not separate"
    if chosen is top:
        shown = [found.samples_per_s.est for found in tied if found.samples_per_s]
        is_fastest = chosen.samples_per_s is not None and chosen.samples_per_s.est >= max(shown)
        return f"{'Fastest and cheapest' if is_fastest else 'Cheapest'} of {len(tied)} configs {how}"
    cheapest = f"Fewest workers, then {_next_criterion(chosen, top)}, of {len(tied)} configs {how}"
    return f"{cheapest}. Fastest estimate: {config_label(top.config)}"


def _next_criterion(chosen: Configuration, top: Configuration) -> str:
    """The first criterion after workers by which the choice beats the fastest, in the order of `_cost`."""
    costs = zip(_CRITERIA, _cost(chosen, {})[1:], _cost(top, {})[1:], strict=True)
    return next((name for name, own, its in costs if own != its), _CRITERIA[-1])


def _savings(chosen: Configuration, tied: Sequence[Configuration], loader: Mapping[str, Any]) -> list[str]:
    """The savings vs the costliest tie: worker processes, and memory as measured."""
    sentences, own = [], worker_count(chosen.config, loader)
    counts = [of_one for found in tied if (of_one := worker_count(found.config, loader)) is not None]
    if own is not None and (workers := max(counts) - own) > 0:
        sentences.append(count(workers, "worker process", "worker processes"))
    for name, kind in (("pss_bytes", "RAM"), ("gpu_memory_used_bytes", "GPU memory")):
        size = getattr(chosen, name)
        most = max((value for found in tied if (value := getattr(found, name)) is not None), default=0)
        if size is not None and most - size >= LEAST_SAVED_BYTES:
            sentences.append(f"{(most - size) / 1e9:.1f} GB of {kind}")
    return [f"Saves {' and '.join(sentences)} vs the costliest tie"] if sentences else []


def _why_untied(
    top: Configuration, others: Sequence[Configuration], faster: Sequence[Configuration], trials: Sequence[Trial]
) -> str:
    if faster:  # in fewer rounds: `top` is then only compared with those that have enough rounds
        fastest, rest = f"Fastest of those with {FEWEST_ROUNDS} rounds or more", "the rest of them"
        others = [found for found in others if len(rates_by_round(found.config, trials)) >= FEWEST_ROUNDS]
    else:
        fastest, rest = "Fastest", "all others"
    if not others:
        return fastest
    undecided = _undecided_others(top, others, trials)
    return ". ".join([fastest, *undecided]) if undecided else f"{fastest}; {rest} are significantly slower"


def _undecided_others(top: Configuration, others: Sequence[Configuration], trials: Sequence[Trial]) -> list[str]:
    """Counts of the configurations that are neither ties nor significantly slower."""
    undecided = [ratio for ratio in (ratio_of(o.config, top.config, trials) for o in others) if not is_below_one(ratio)]
    slower = sum(ratio is not None and ratio.est < 1 - PRACTICAL_TIE for ratio in undecided)
    unknown = len(undecided) - slower
    sentences = []
    if slower:
        sentences.append(f"{count(slower, 'other is', 'others are')} over {_LIMIT} slower (not significant)")
    if unknown:
        sentences.append(f"{count(unknown, 'other')} not compared: too few rounds in common")
    return sentences


def _too_few_rounds(found: Configuration, trials: Sequence[Trial]) -> str:
    rounds = len(rates_by_round(found.config, trials))
    return f"{config_label(found.config)} was faster, in {count(rounds, 'round')} only"


def _rank(found: Configuration) -> int:
    return found.rank or 0
