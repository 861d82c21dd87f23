"""Why the chosen configuration was chosen, with no claim that the rounds do not bear out."""

from __future__ import annotations

from collections.abc import Sequence

from loaderbench.analysis.configurations import PRACTICAL_TIE, rates_by_round, ratio_of
from loaderbench.analysis.intervals import FEWEST_ROUNDS, excludes_one
from loaderbench.records import Configuration, Interval, Trial, config_label

LEAST_SAVED_BYTES = 50_000_000  # below a tenth of a gigabyte nobody chooses by it
_LIMIT = f"{PRACTICAL_TIE * 100:.0f} %"


def why_chosen(chosen: Configuration, configurations: Sequence[Configuration], trials: Sequence[Trial]) -> str:
    """Say how it stands to the others, and what looked faster on too few rounds to be named."""
    if len(configurations) == 1:
        return "it is the only one"
    others = [found for found in configurations if found.samples_per_s is not None and found is not chosen]
    if not others:
        return "it is the only one that was measured"
    tied = [found for found in configurations if found.tied_with_best]
    top = min(tied, key=_rank)
    faster = [found for found in others if _rank(found) < _rank(top)]
    if len(tied) > 1:
        apart = [found for found in others if not found.tied_with_best and found not in faster]
        said = [_among_ties(chosen, top, len(tied)), *_saved(chosen, tied), *_not_excluded(top, apart, trials)]
    else:
        said = [_alone(top, others, faster, trials)]
    return "; ".join([*said, *(_too_few_rounds(found, trials) for found in faster)])


def _among_ties(chosen: Configuration, top: Configuration, tied: int) -> str:
    if chosen is top:
        return f"{tied} configurations within {_LIMIT} cannot be told apart; it is the fastest and the cheapest of them"
    return (
        f"{tied} configurations within {_LIMIT} cannot be told apart; it is the cheapest of them "
        f"(fewest workers, then least memory); the fastest looked {config_label(top.config)}"
    )


def _saved(chosen: Configuration, tied: Sequence[Configuration]) -> list[str]:
    """What the dearest of the ties would take more of: worker processes, and memory as it was measured."""
    said = []
    if (workers := max(map(_workers, tied)) - _workers(chosen)) > 0:
        said.append(f"{workers} worker process{'es' * (workers > 1)}")
    for name, kind in (("pss_bytes", "host memory"), ("gpu_memory_used_bytes", "GPU memory")):
        own = getattr(chosen, name)
        most = max((value for found in tied if (value := getattr(found, name)) is not None), default=0)
        if own is not None and most - own >= LEAST_SAVED_BYTES:
            said.append(f"{(most - own) / 1e9:.1f} GB of {kind}")
    return [f"beside the dearest of them it leaves {' and '.join(said)}"] if said else []


def _workers(found: Configuration) -> int:
    count = found.config.get("num_workers", 0)
    return count if isinstance(count, int) else 0


def _alone(
    top: Configuration, others: Sequence[Configuration], faster: Sequence[Configuration], trials: Sequence[Trial]
) -> str:
    if faster:  # on fewer rounds: then it is the fastest of those with rounds enough, and is compared with these
        fastest, of_them = f"it is the fastest of those completed in {FEWEST_ROUNDS} rounds or more", " of them"
        others = [found for found in others if len(rates_by_round(found.config, trials)) >= FEWEST_ROUNDS]
    else:
        fastest, of_them = "it is the fastest", ""
    if not others:
        return fastest
    undecided = _not_excluded(top, others, trials)
    return (
        "; ".join([fastest, *undecided])
        if undecided
        else f"{fastest}, and every other{of_them} is slower beyond the noise"
    )


def _not_excluded(top: Configuration, others: Sequence[Configuration], trials: Sequence[Trial]) -> list[str]:
    """What the noise leaves open of those that are no ties."""
    undecided = [ratio for ratio in (ratio_of(o.config, top.config, trials) for o in others) if not _is_slower(ratio)]
    slower = sum(ratio is not None and ratio.est < 1 - PRACTICAL_TIE for ratio in undecided)
    unknown = len(undecided) - slower
    said = []
    if slower == 1:
        said.append(f"1 other looks more than {_LIMIT} slower, but the noise does not exclude that it is as fast")
    elif slower:
        said.append(
            f"{slower} others look more than {_LIMIT} slower, but the noise does not exclude that they are as fast"
        )
    if unknown:
        said.append(f"{unknown} other{'s' * (unknown > 1)} cannot be compared on so few rounds in common with it")
    return said


def _is_slower(ratio: Interval | None) -> bool:
    return ratio is not None and excludes_one(ratio) and ratio.est < 1


def _too_few_rounds(found: Configuration, trials: Sequence[Trial]) -> str:
    rounds = len(rates_by_round(found.config, trials))
    counted = f"{rounds} round{'s' * (rounds > 1)}"
    return f"{config_label(found.config)} looked faster but was completed in {counted} only"


def _rank(found: Configuration) -> int:
    return found.rank or 0
