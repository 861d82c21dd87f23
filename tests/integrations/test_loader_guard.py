"""The pytest plugin, in the pytest of a user: it changes nothing until a test asks for it, and then decides."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from loaderbench.diagnosis.failures import STARTED_HINT
from loaderbench.errors import UsageError
from loaderbench.integrations import loader_guard as guard
from loaderbench.integrations.guarded import _guarded
from loaderbench.result import load

pytest_plugins = ["pytester"]
LIGHT = ("torch", "pandas", "plotly", "numpy", "loaderbench.records", "loaderbench.integrations.loader_guard")
EXAMPLE = Path(__file__).parents[2] / "reports" / "examples" / "two-cores"

TESTS = """
import pytest

def make():
    return [([0.0] * 8, [0] * 8)] * 50

def test_fast(loader_guard):
    run = loader_guard(make, samples_per_s=1, rounds=4, seconds=0.02)
    assert run.configurations[0].samples_per_s.est > 1

def test_slow(loader_guard):
    loader_guard(make(), samples_per_s=1e12, rounds=4, seconds=0.02)

def test_open(loader_guard):
    loader_guard(make, samples_per_s=1, rounds=1, seconds=0.02)

def test_broken(loader_guard):
    def broken():
        raise ValueError("no such shard")
    loader_guard(broken, samples_per_s=1, rounds=1, seconds=0.02)
"""

WRONG = """
import pytest

def test_no_limit(loader_guard):
    loader_guard(list)

def test_no_gate(loader_guard):
    loader_guard(list, fail_if="sample_per_s<5")

def test_no_reference(loader_guard):
    loader_guard(list, fail_if="samples_per_s:-5%")

def test_no_demand(loader_guard):
    loader_guard(list, fail_if="data_wait_share>5%")

def test_not_written(loader_guard):
    loader_guard(list, reference="loader.json")
"""

STARTED = """
from torch.utils.data import DataLoader

def test_started(loader_guard):
    batches = (batch for batch in DataLoader(range(100_000), 4, num_workers=1))
    next(batches)
    loader_guard(batches, samples_per_s=1, rounds=4, seconds=0.02)
"""

REFERENCE = """
import time

class Waiting:  # its rate hardly varies, on a busy machine too
    def __iter__(self):
        for _ in range(50):
            time.sleep(0.02)
            yield [0.0] * 8, [0] * 8

def test_reference(loader_guard):
    loader_guard(Waiting, reference="reference/loader.json", fail_if="samples_per_s:-99.9%", rounds=4, seconds=0.2)
"""


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's pytest has no other workers, even if this one does."""
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT"):
        monkeypatch.delenv(name, raising=False)


def run(pytester: pytest.Pytester, text: str, *flags: str) -> pytest.RunResult:
    pytester.makepyfile(test_of_a_user=text)
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:xdist", "-rs", *flags)


def test_the_plugin_imports_nothing_that_a_user_pays_for() -> None:
    code = f"import sys, loaderbench.integrations.pytest_plugin\nprint([n for n in {LIGHT} if n in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_it_is_registered_and_does_nothing_to_other_tests(pytester: pytest.Pytester) -> None:
    done = run(pytester, "def test_other(): pass", "--fixtures-per-test")
    assert "loader_guard" not in done.stdout.str()
    assert "loader_guard" in run(pytester, "def test_other(): pass", "--fixtures").stdout.str()


@pytest.fixture
def imported() -> None:
    """torch, which the user's pytest would otherwise import anew for each test."""
    import loaderbench.runner.preload  # noqa: F401


@pytest.mark.usefixtures("imported")
def test_a_rate_passes_fails_or_is_left_open_and_a_broken_loader_fails(pytester: pytest.Pytester) -> None:
    done = run(pytester, TESTS, "--junitxml=found.xml")
    done.assert_outcomes(passed=1, failed=2, skipped=1)
    said = done.stdout.str()
    assert "Failed: samples_per_s<1000000000000: " in said
    assert "Report: " in said
    assert "inconclusive: samples_per_s<1: " in said
    assert "(no interval: one process)" in said
    assert "the loader failed in 1 of 1 processes: error: ValueError: no such shard" in said
    assert "in measure_guarded" not in said
    assert 'name="samples_per_s_lo"' in (pytester.path / "found.xml").read_text()
    assert not _guarded


@pytest.mark.usefixtures("imported")
def test_an_iterator_that_has_started_its_workers_is_told_to_be_a_function(pytester: pytest.Pytester) -> None:
    done = run(pytester, STARTED)
    done.assert_outcomes(failed=1)
    assert STARTED_HINT in done.stdout.str()


def test_only_an_iterator_of_a_test_that_has_workers_may_have_started_them(monkeypatch: pytest.MonkeyPatch) -> None:
    for children, started in (([], False), ([object()], True)):
        monkeypatch.setattr("multiprocessing.active_children", lambda found=children: found)
        assert guard._has_started(iter([1])) is started
        assert not guard._has_started([1])
        assert not guard._has_started(list)


def test_what_is_wrong_is_said_in_one_line_at_the_call(pytester: pytest.Pytester) -> None:
    done = run(pytester, WRONG)
    done.assert_outcomes(failed=5)
    lines = [line for line in done.stdout.lines if line.startswith("E ")]
    for line, words in zip(
        lines,
        (
            "no threshold; add",
            "did you mean samples_per_s?",
            "add reference=PATH",
            "add demand=",
            "no reference run at",
        ),
        strict=True,
    ):
        assert words in line


def test_next_to_other_workers_nothing_is_measured(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "4")
    text = "def test_loader(loader_guard):\n    loader_guard(None, samples_per_s=1)"
    done = run(pytester, text)
    done.assert_outcomes(skipped=1)
    assert "inconclusive: 4 workers of pytest-xdist share the CPUs" in done.stdout.str()
    run(pytester, text.replace("=1)", '=1, inconclusive="fail")')).assert_outcomes(failed=1)


@pytest.mark.parametrize(
    ("rate", "text"), [(500, "samples_per_s<500"), (0.5, "samples_per_s<0.5"), (Fraction(1, 2), "samples_per_s<0.5")]
)
def test_a_rate_is_a_gate(rate: Any, text: str) -> None:
    [gate] = guard._gates(rate, (), None)
    assert (gate.text, gate.limit) == (text, rate)


@pytest.mark.parametrize(("gate", "place"), [("data_wait_share>5%", None), ("data_wait_share:+3pp", Path("l.json"))])
def test_a_gate_on_data_wait_needs_a_demand(gate: str, place: Path | None) -> None:
    assert [found.text for found in guard._gates(None, gate, place, 500.0)] == [gate]
    with pytest.raises(UsageError, match=rf"^fail_if {re.escape(gate)}: data wait needs a consumer; add demand="):
        guard._gates(None, ["samples_per_s<5", gate], place)


def test_a_reference_without_a_gate_is_held_to_five_percent() -> None:
    assert [gate.text for gate in guard._gates(None, (), Path("loader.json"))] == ["samples_per_s:-5%"]


def test_a_reference_with_a_rate_is_held_to_both() -> None:
    both = [gate.text for gate in guard._gates(50, (), Path("loader.json"))]
    assert both == ["samples_per_s:-5%", "samples_per_s<50"]
    own = [gate.text for gate in guard._gates(50, "samples_per_s:-10%", Path("loader.json"))]
    assert own == ["samples_per_s:-10%", "samples_per_s<50"]


def test_a_test_has_one_name_whatever_folder_pytest_starts_in() -> None:
    for nodeid in ("test_a.py::TestB::test_c[1]", "tests/unit/test_a.py::TestB::test_c[1]"):
        assert guard._name_of("test_a.py", nodeid) == "test_a.py::TestB::test_c[1]"


def test_a_reference_is_written_to_a_file_of_any_name_and_what_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    measured, reference = load(EXAMPLE), tmp_path / "reference"
    reference.touch()
    guard._keep(measured, reference)
    guard._keep(measured, tmp_path / "folder")
    assert reference.read_text() == (tmp_path / "folder" / "run.json").read_text() == (EXAMPLE / "run.json").read_text()
    with pytest.raises(pytest.fail.Exception, match=r"^reference run .*: cannot write: File exists$"):
        guard._keep(measured, reference / "below.json")


@pytest.mark.slow
@pytest.mark.usefixtures("imported")
def test_a_reference_is_written_and_compared_with_and_one_of_another_machine_is_not(pytester: pytest.Pytester) -> None:
    written = run(pytester, REFERENCE, "--loaderbench-update")
    written.assert_outcomes(skipped=1)
    place = pytester.path / "reference" / "loader.json"
    assert f"reference run written to {place}" in written.stdout.str()
    assert str(pytester.path) not in place.read_text()
    run(pytester, REFERENCE).assert_outcomes(passed=1)
    run(pytester, REFERENCE, f"--rootdir={pytester.path.parent}").assert_outcomes(passed=1)
    record = json.loads(place.read_text())
    record["environment"]["cpu_model"] = "Another CPU"
    place.write_text(json.dumps(record))
    elsewhere = run(pytester, REFERENCE)
    elsewhere.assert_outcomes(skipped=1)
    assert "Runs are not comparable. CPU: Another CPU \N{RIGHTWARDS ARROW} " in elsewhere.stdout.str()
