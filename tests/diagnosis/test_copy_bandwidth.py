"""Bandwidth of copies to the GPU: measured by replays from the host, next to what the GPU alone takes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loaderbench.diagnosis.copy_bandwidth import NOT_COPIED, with_bandwidth
from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.isolation import describe_isolation, with_exposed_copy
from loaderbench.diagnosis.ranking import Subject
from loaderbench.diagnosis.verdict import decide
from loaderbench.records import Config, CopySpeed, GpuUse, Interval, Isolation, IsolationName, Trial

CONFIG: Config = {"batch_size": 100, "num_workers": 2}
MB = 1e6


def trial(isolation: IsolationName | None, round_: int, batch_s: float, use: GpuUse | None = None) -> Trial:
    return Trial(
        id=f"r{round_}-{isolation}",
        role="isolation" if isolation else "sweep",
        config=CONFIG,
        round=round_,
        status="completed",
        isolation=isolation,
        samples_per_s=100 / batch_s,
        batches=40,
        samples=4_000,
        steady_s=40 * batch_s,
        gpus=(use,) if use else (),
    )


def use(pinned: float, pageable: float, *, generation: int | None = 4, width: int | None = 16) -> GpuUse:
    speed = CopySpeed(
        index=0,
        bytes_per_sample=0.6 * MB,
        pinned_gb_per_s=Interval(pinned, pinned - 1, pinned + 1),
        pageable_gb_per_s=Interval(pageable, pageable - 1, pageable + 1),
    )
    return GpuUse(0, "GPU-a", pcie_generation=generation, pcie_width=width, copy_speed=speed)


def isolated(*uses: GpuUse, copy_s: float = 0.010, on_device: bool = True) -> Isolation:
    """A step of 40 ms, and the copy before it."""
    runs = [trial("replay_host", number, 0.040 + copy_s, one) for number, one in enumerate(uses, 1)]
    runs += [trial("replay_device", number, 0.040) for number in range(1, len(uses) + 1) if on_device]
    whole = [trial(None, number, 0.041 + copy_s) for number in range(1, len(uses) + 1)]
    found, why = describe_isolation(whole, runs, left_out={}, consumer="model", demand=None, cache="warm")
    assert found, why
    return with_bandwidth(found, runs, {"pin_memory": False})


def test_the_process_is_the_unit_and_the_gpu_alone_says_what_is_wanted() -> None:
    copy = isolated(use(24.0, 6.0), use(25.0, 6.5), use(26.0, 7.0)).copy
    assert copy is not None
    assert (copy.pinned, copy.pinned_gb_per_s.est, copy.pageable_gb_per_s.est) == (False, 25.0, 6.5)
    assert copy.pageable_gb_per_s.lo is not None, "over three processes, not over the copies of one"
    assert copy.wanted_gb_per_s == pytest.approx(100 / 0.040 * 0.6 * MB / 1e9)
    assert copy.link_gb_per_s == pytest.approx(31.5, abs=0.01)
    assert copy.not_measured == {}


def test_of_a_link_that_saves_power_the_fastest_reading_counts() -> None:
    copy = isolated(use(24.0, 6.0, generation=1), use(24.0, 6.0, generation=5)).copy
    assert copy is not None
    assert copy.link_gb_per_s == pytest.approx(63.0, abs=0.01)


def test_what_is_not_known_has_a_reason() -> None:
    copy = isolated(use(24.0, 6.0, width=None), on_device=False).copy
    assert copy is not None
    assert (copy.wanted_gb_per_s, copy.link_gb_per_s) == (None, None)
    assert copy.not_measured == {"wanted_gb_per_s": "not run", "link_gb_per_s": "PCIe generation or width is unknown"}
    without = isolated(replace(use(1.0, 1.0), copy_speed=None))
    assert (without.copy, without.not_measured["copy"]) == (None, NOT_COPIED)


def test_a_transfer_bound_verdict_names_both_rates_and_what_the_gpu_takes() -> None:
    found = isolated(use(24.0, 6.0), use(24.0, 6.0), use(24.0, 6.0))
    facts = with_exposed_copy(Facts(workers=2, cpus=4, cpus_online=4, wait_share=0.01), found)
    subject = Subject(CONFIG, Interval(2_000.0, 1_990.0, 2_010.0), Interval(0.01, 0.005, 0.015), True, facts)
    verdict = decide(subject, "model", None, 0)
    assert verdict.bound == "transfer"
    said = "Copy bandwidth: pageable 6 GB/s, pinned 24 GB/s; training needs 1.5 GB/s"
    assert verdict.evidence[1] == said
