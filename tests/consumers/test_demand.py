"""Which demand a run assumed, where it came from, and how reports state it."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loaderbench.conclusion import conclude
from loaderbench.consumers import computes_on_cpus, consumer_of, demand_of, demand_rate, describe_demand
from loaderbench.consumers.emulated import EmulatedAccelerator
from loaderbench.records import AssumedDemand, RunRecord
from loaderbench.store import read_run
from loaderbench.suite import Suite

ROOT = Path(__file__).parents[2]

CITED = AssumedDemand(
    samples_per_s=2470.0,
    origin="accelerator",
    accelerator="A100",
    model="ResNet-50",
    precision="mixed precision",
    source="NVIDIA DeepLearningExamples",
    address="https://github.com/NVIDIA/DeepLearningExamples/blob/729963dd/PyTorch/Classification/ConvNets/resnet50v1.5/README.md",
)
DEFAULT = AssumedDemand(samples_per_s=1000.0, origin="default")


def suite(**consumer: Any) -> Suite:
    return Suite.model_validate({"consumer": consumer})


@pytest.mark.parametrize(
    ("options", "demand"),
    [
        ({}, DEFAULT),
        ({"demand": 1000.0}, AssumedDemand(samples_per_s=1000.0, origin="suite")),
        ({"demand": 12.5}, AssumedDemand(samples_per_s=12.5, origin="suite")),
        ({"accelerator": "nvidia a100"}, CITED),
    ],
)
def test_the_demand_is_the_default_the_suite_s_or_that_of_a_gpu(options: dict[str, Any], demand: AssumedDemand) -> None:
    assert consumer_of(suite(**options).consumer, "emulated").assumed_demand(Path()) == demand


@pytest.mark.parametrize(
    ("demand", "words"),
    [
        (DEFAULT, "Target 1,000 samples/s (default; set consumer.demand or consumer.accelerator)"),
        (AssumedDemand(samples_per_s=12.5, origin="suite"), "Target 12.5 samples/s (consumer.demand)"),
        (CITED, "Target 2,470 samples/s (A100, ResNet-50, mixed precision; NVIDIA DeepLearningExamples)"),
    ],
)
def test_a_reader_is_told_the_number_and_where_it_is_from(demand: AssumedDemand, words: str) -> None:
    assert str(describe_demand(demand)) == words


def test_the_emulated_gpu_takes_the_published_rate() -> None:
    now_s = [0.0]
    device = consumer_of(suite(accelerator="h100").consumer, "emulated").make({}, Path(), lambda: now_s[0])
    assert isinstance(device, EmulatedAccelerator)
    device.consume(None, 2791)
    device.wait_clock.ask()
    now_s[0] = 3.0
    device.wait_clock.got()
    assert device.wait_clock.waits_s() == [pytest.approx(2.0)]


def of_schema_1(folder: Path) -> RunRecord:
    """A recorded run whose suite asks for 50 samples/s."""
    (folder / "run.json").write_bytes(gzip.decompress((ROOT / "tests/recorded/run_small.json.gz").read_bytes()))
    return read_run(folder)


def test_a_saved_run_that_kept_only_the_number_says_whether_it_is_the_default(tmp_path: Path) -> None:
    assert demand_of(read_run(ROOT / "reports" / "examples" / "two-cores")) == DEFAULT
    assert demand_of(of_schema_1(tmp_path)) == AssumedDemand(samples_per_s=50.0, origin="suite")
    assert demand_rate(of_schema_1(tmp_path)) == 50.0


@pytest.mark.parametrize("section", [None, [], {}, {"demand": None}, {"demand": 0}, {"demand": "fast"}])
def test_a_saved_run_that_kept_no_usable_number_has_no_demand(section: Any, tmp_path: Path) -> None:
    run = replace(of_schema_1(tmp_path), suite={"consumer": section})
    assert (demand_of(run), demand_rate(run)) == (None, None)
    assert conclude(run).not_measured["ceiling"] == "the run did not record the target of the emulated GPU"


def test_a_run_says_what_it_recorded_though_the_table_may_have_changed(tmp_path: Path) -> None:
    recorded = replace(CITED, samples_per_s=2000.0)
    assert demand_of(replace(of_schema_1(tmp_path), assumed_demand=recorded)) == recorded


@pytest.mark.parametrize("consumer", ["model", "none", "target", "loop"])
def test_where_no_gpu_was_emulated_there_is_no_demand(consumer: str, tmp_path: Path) -> None:
    assert demand_of(replace(of_schema_1(tmp_path), consumer=consumer)) is None


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"demand": 200.0, "host_cpu_s_per_sample": 0.005}, True),
        ({"demand": 200.0, "host_cpu_s_per_sample": 0.009, "host_threads": 2}, True),
        ({"demand": 200.0, "host_cpu_s_per_sample": 0.004}, False),
        ({"demand": 200.0, "host_cpu_s_per_sample": None}, False),
        ({"demand": "many", "host_cpu_s_per_sample": 1.0}, False),
        ({"kind": "none"}, False),
    ],
)
def test_a_step_as_long_as_its_cpu_time_is_computed_on_cpus(options: dict[str, Any], expected: bool) -> None:
    assert computes_on_cpus(options) == expected
