"""GPU memory by batch size: peaks, the line through them, and the batch that would fill the device."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from loaderbench.diagnosis.gpu_memory import NO_PEAKS, describe_gpu_memory
from loaderbench.records import Failure, GpuMemory, GpuUse, Trial

GIB, MIB = 2**30, 2**20


def trial(batch_size: int, reserved: float | None, used: float | None = None, total: int = 80 * GIB) -> Trial:
    gpu = GpuUse(
        0,
        "GPU-1",
        memory_used_bytes=None if used is None else int(used),
        memory_total_bytes=total,
        peak_allocated_bytes=None if reserved is None else int(reserved * 0.9),
        peak_reserved_bytes=None if reserved is None else int(reserved),
    )
    known: Any = {"id": f"b{batch_size}", "role": "sweep", "config": {"batch_size": batch_size}, "round": 1}
    return Trial(**known, status="completed", gpus=(gpu,))


def memory(*trials: Trial) -> GpuMemory:
    found, why = describe_gpu_memory(trials, {})
    assert found is not None, why
    return found


@given(
    fixed=st.integers(100 * MIB, 8 * GIB),
    per_sample=st.integers(2 * MIB, 200 * MIB),
    others=st.integers(300 * MIB, 20 * GIB),
    sizes=st.lists(st.integers(1, 300), min_size=2, max_size=5, unique=True),
)
def test_the_largest_batch_fills_what_others_leave(fixed: int, per_sample: int, others: int, sizes: list[int]) -> None:
    total = 80 * GIB
    found = memory(*(trial(size, fixed + per_sample * size, fixed + per_sample * size + others) for size in sizes))
    assert found.others_bytes == pytest.approx(others, abs=2)
    assert found.largest_batch is not None
    assert found.bytes_per_sample == pytest.approx(per_sample, rel=1e-3)
    left = total - others - fixed - per_sample * found.largest_batch
    assert -0.01 * total < left < per_sample + 0.01 * total
    assert [one.batch_size for one in found.batches] == sorted(sizes)


def test_of_several_trials_the_largest_peak_counts() -> None:
    found = memory(trial(32, 2 * GIB, 3 * GIB), trial(32, 3 * GIB, 5 * GIB), trial(64, 5 * GIB, 6 * GIB))
    assert found.batches[0].peak_reserved_bytes == 3 * GIB
    assert found.batches[0].used_bytes == 5 * GIB
    assert found.others_bytes == 2 * GIB


@pytest.mark.parametrize(
    ("peaks_gib", "why"),
    [
        ({32: 2}, "one batch size was measured"),
        ({32: 2, 64: 2}, "memory does not grow with the batch"),
        ({32: 4, 64: 2}, "memory does not grow with the batch"),
        ({32: 2, 64: 2.1, 128: 9}, "memory does not grow in proportion to the batch"),
    ],
)
def test_without_a_line_there_is_a_reason(peaks_gib: dict[int, float], why: str) -> None:
    found = memory(*(trial(size, peak * GIB, peak * GIB) for size, peak in peaks_gib.items()))
    assert found.largest_batch is None
    assert found.not_measured["largest_batch"] == why


def test_where_the_driver_does_not_tell_the_whole_nothing_is_predicted() -> None:
    found = memory(trial(32, 2 * GIB), trial(64, 3 * GIB))
    assert (found.largest_batch, found.bytes_per_sample) == (None, 32 * MIB)
    assert "could not be read" in found.not_measured["largest_batch"]


def test_trials_that_failed_or_used_no_gpu_have_no_peak() -> None:
    failed = replace(trial(32, 2 * GIB), status="failed")
    assert describe_gpu_memory([failed, trial(64, None), replace(trial(32, GIB), gpus=())], {}) == (None, NO_PEAKS)


def test_a_batch_that_ran_out_of_memory_bounds_the_prediction() -> None:
    failed = Trial(
        id="b96",
        role="sweep",
        config={"batch_size": 96},
        round=1,
        status="failed",
        failure=Failure("device_memory", "", ""),
    )
    fits = [trial(32, 4 * GIB, 5 * GIB), trial(64, 7 * GIB, 8 * GIB)]
    assert (memory(*fits).largest_batch or 0) > 700
    found = memory(*fits, failed)
    assert (found.too_large, found.largest_batch) == ((96,), 95), "measured, against a line that says more"
    assert memory(trial(32, 4 * GIB, 5 * GIB), failed).too_large == (96,), "without a line, too"


def test_a_batch_that_fitted_is_not_above_the_largest() -> None:
    failed = replace(trial(48, None), status="failed", failure=Failure("device_memory", "", ""), gpus=())
    found = memory(trial(32, 4 * GIB, 5 * GIB), trial(64, 7 * GIB, 8 * GIB), failed)
    assert found.too_large == (48,)
    assert (found.largest_batch or 0) > 700
