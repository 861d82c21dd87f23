"""Combines the results of all ranks of a trial: summed rates, and otherwise the slowest rank's values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loaderbench.recorder import Measurement
from loaderbench.recorder.ranks import RankSteps, waits_for_others
from loaderbench.records.words import sum_if_all_known
from loaderbench.runner.protocol import Result

ALIKE = 0.03
"""Ranks whose rates differ by less are alike: the one that waits longest for data is the slowest."""

SAME_SAMPLES = "Every rank loads the same samples: the target does not shard by rank"
NOT_TIMED = "steps are timed by the host clock, and the host runs ahead of the device"
ONE_RANK = "one rank"


def result_of_ranks(results: Sequence[Result]) -> Result:
    """Combine the results of all ranks.

    A trial's rate is the sum of the rates in `ranks`, computed by `loop_times`; the combined measurement has another
    rate.
    """
    place = slowest_of(results)
    slowest = results[place]
    note = ". ".join(filter(None, (slowest.consumer_note, _same_samples(results))))
    return replace(
        slowest,
        measurement=_combined_measurement([result.measurement for result in results], slowest.measurement),
        samples_per_epoch=sum_if_all_known(result.samples_per_epoch for result in results),
        can_be_stopped=False,
        cuda_devices=tuple(sorted({index for result in results for index in result.cuda_devices})),
        cuda_memory=tuple(peak for result in results for peak in result.cuda_memory),
        consumer_note=note,
        ranks=tuple(results),
        slowest_rank=place,
    )


def slowest_of(results: Sequence[Result]) -> int:
    """The rank with the lowest rate or, if all are alike, with the longest wait for data."""
    rates = [result.measurement.samples_per_s for result in results]
    if min(rates) < (1 - ALIKE) * max(rates):
        return rates.index(min(rates))
    waits = [result.measurement.data_wait_share for result in results]
    return waits.index(max(waits))


def rank_waits(results: Sequence[Result]) -> tuple[dict[int, float], str]:
    """The share of step time that each rank waits for batches of other ranks, or why it is unknown."""
    if len(results) < 2:
        return {}, ONE_RANK
    steps = {rank: result.steps for rank, result in enumerate(results) if result.steps is not None}
    if len(steps) < len(results):
        return {}, NOT_TIMED
    return waits_for_others({rank: RankSteps("", found) for rank, found in steps.items()})


def _combined_measurement(ranks: Sequence[Measurement], slowest: Measurement) -> Measurement:
    """The window in which all ranks were measured, with their total batches; waits are those of the slowest rank."""
    began_s, ended_s = max(one.began_s for one in ranks), min(one.ended_s for one in ranks)
    if ended_s <= began_s:
        began_s, ended_s = slowest.began_s, slowest.ended_s
    return replace(
        slowest,
        time_to_first_batch_s=max(one.time_to_first_batch_s for one in ranks),
        began_s=began_s,
        ended_s=ended_s,
        batches=sum(one.batches for one in ranks),
        samples=sum(one.samples for one in ranks),
        ended_early=any(one.ended_early for one in ranks),
    )


def _same_samples(results: Sequence[Result]) -> str:
    first = {result.first_batch for result in results}
    return SAME_SAMPLES if len(results) > 1 and len(first) == 1 and first != {""} else ""
