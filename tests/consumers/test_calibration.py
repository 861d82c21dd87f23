"""A step that one machine measured is emulated on another: by its file, with its time for each batch size."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from loaderbench.consumers import consumer_of, make_consumer, option_problems, resolve_consumer
from loaderbench.consumers.demand import describe_demand, read_calibration
from loaderbench.errors import MissingError
from loaderbench.records import CALIBRATION_FORMAT, Calibration, Interval, StepTime
from loaderbench.suite import Suite

MEASURED = Calibration(
    format=CALIBRATION_FORMAT,
    run="on the big machine",
    device="NVIDIA H100",
    model="resnet50",
    precision="mixed",
    steps=(
        StepTime(batch_size=32, step_s=Interval(0.02, None, None), trials=3),
        StepTime(batch_size=128, step_s=Interval(0.05, None, None), trials=3),
    ),
    fixed_s=0.01,
    s_per_sample=0.0003125,
)


EMPTY = StepTime(batch_size=0, step_s=Interval(0.02, None, None), trials=3)


def saved(folder: Path, found: Calibration = MEASURED) -> Any:
    (folder / "gpu.json").write_text(json.dumps(asdict(found)))
    return Suite.model_validate({"consumer": {"calibration": "gpu.json"}}).consumer


@pytest.mark.parametrize("accelerator", [True, False])
def test_it_is_emulated_on_every_machine_and_says_where_its_rate_is_from(tmp_path: Path, accelerator: bool) -> None:
    section = saved(tmp_path)
    assert resolve_consumer(section, accelerator=accelerator) == "emulated"
    demand = consumer_of(section, "emulated").assumed_demand(tmp_path)
    assert demand is not None
    assert demand.samples_per_s == pytest.approx(128 / 0.05)
    said = "Target 2,560 samples/s (NVIDIA H100, resnet50, measured by run on the big machine)"
    assert str(describe_demand(demand)) == said


@pytest.mark.parametrize(("samples", "step_s"), [(32, 0.02), (128, 0.05), (1, 0.0103125)])
def test_each_batch_takes_what_it_took_there(tmp_path: Path, samples: int, step_s: float) -> None:
    now_s = [100.0]
    device: Any = make_consumer(saved(tmp_path), "emulated", {}, tmp_path, lambda: now_s[0])
    device.consume(None, samples)
    device.wait_clock.ask()
    now_s[0] = 101.0
    device.wait_clock.got()
    assert device.wait_clock.waits_s() == [pytest.approx(1.0 - step_s)]


def test_the_ceiling_of_a_batch_size_is_its_own_rate(tmp_path: Path) -> None:
    demand = consumer_of(saved(tmp_path), "emulated").assumed_demand(tmp_path)
    assert demand is not None
    assert [demand.rate_at(size) for size in (32, 128, None)] == pytest.approx([32 / 0.02, 128 / 0.05, 128 / 0.05])
    assert replace(demand, fixed_s=None, s_per_sample=None).rate_at(32) == demand.samples_per_s


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "No such file or directory; write one with `loaderbench export --to calibration`"),
        ("{", "invalid calibration"),
        (json.dumps({**asdict(MEASURED), "fixed_s": "fast"}), "invalid calibration: fixed_s: "),
        (json.dumps({**asdict(MEASURED), "format": "another"}), "invalid calibration: format: "),
        (json.dumps(asdict(replace(MEASURED, steps=()))), "step times must be positive"),
        (json.dumps(asdict(replace(MEASURED, s_per_sample=0.0, fixed_s=0.0))), "step times must be positive"),
        (json.dumps(asdict(replace(MEASURED, s_per_sample=float("nan")))), "step times must be positive"),
        (json.dumps(asdict(replace(MEASURED, fixed_s=float("inf")))), "step times must be positive"),
        (json.dumps(asdict(replace(MEASURED, steps=(EMPTY,)))), "step times must be positive"),
    ],
)
def test_an_invalid_file_is_a_one_line_error(tmp_path: Path, text: str | None, words: str) -> None:
    if text is not None:
        (tmp_path / "gpu.json").write_text(text)
    with pytest.raises(MissingError, match=r"^consumer.calibration: .*gpu.json: ") as raised:
        read_calibration(tmp_path / "gpu.json")
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_terminal_shows_the_names_of_a_file_on_one_line(tmp_path: Path) -> None:
    section = saved(tmp_path, replace(MEASURED, device="H100\x1b[31m\n", run="a\tb"))
    demand = consumer_of(section, "emulated").assumed_demand(tmp_path)
    assert demand is not None
    assert str(describe_demand(demand)).isprintable()


@pytest.mark.parametrize("other", [{"demand": 5.0}, {"accelerator": "a100"}, {"kind": "model"}])
def test_it_alone_sets_the_target(other: dict[str, Any]) -> None:
    section = Suite.model_validate({"consumer": {"calibration": "gpu.json", **other}}).consumer
    assert [problem.option for problem in option_problems(section)] == ["calibration"]


@given(st.integers(1, 4096), st.floats(1e-6, 0.1), st.floats(0, 0.1))
def test_the_target_is_the_rate_of_the_largest_batch(size: int, s_per_sample: float, fixed_s: float) -> None:
    steps = (StepTime(batch_size=size, step_s=Interval(1.0, None, None), trials=1),)
    found = replace(MEASURED, steps=steps, fixed_s=fixed_s, s_per_sample=s_per_sample)
    assert found.samples_per_s == pytest.approx(size / (fixed_s + s_per_sample * size))
