"""`loaderbench.run`: what its arguments make of a suite."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fakes import Notes

from loaderbench.errors import UsageError
from loaderbench.session import running
from loaderbench.session.running import run


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What `run` asks `run_suite` for."""
    found: list[Any] = []

    def measured(*given: Any) -> Any:
        found.append(given)
        return SimpleNamespace(run="a run", folder=Path("there"), stopped_by=None)

    monkeypatch.setattr(running, "run_suite", measured)
    return found


def file(tmp_path: Path, text: str = "measure: {rounds: 3}\n") -> Path:
    (tmp_path / "s.yaml").write_text(text)
    return tmp_path / "s.yaml"


def test_arguments_of_run_override_the_suite(tmp_path: Path, asked: list[Any]) -> None:
    (tmp_path / "photos").mkdir()
    hears: Any = Notes()
    given: dict[str, Any] = {"rounds": 5, "seconds": 0.5, "verify": False, "axes": {"num_workers": (1, 2)}}
    assert run(file(tmp_path), data=tmp_path / "photos", out="o", listener=hears, **given) == "a run"
    ((found, out, listener, resume),) = asked
    measure = found.suite.measure
    assert (measure.rounds, measure.seconds, measure.verify) == (5, 0.5, False)
    assert found.suite.sweep == {"num_workers": [1, 2]}
    assert found.suite.dataset.root == str((tmp_path / "photos").resolve())
    assert (out, listener, resume) == (Path("o"), hears, None)


def test_without_arguments_the_suite_is_taken_as_it_is(tmp_path: Path, asked: list[Any]) -> None:
    run(str(file(tmp_path)))
    ((found, out, listener, resume),) = asked
    assert (found.suite.measure.rounds, list(found.overrides), out, listener, resume) == (3, [], None, None, None)


def test_anything_but_a_path_is_one_line() -> None:
    given: Any = {"name": "images"}
    with pytest.raises(UsageError, match=r"^run\(\) expects the path of a suite file, got dict$"):
        run(given)


def test_a_run_that_goes_on_takes_the_flags_of_the_earlier_call(
    tmp_path: Path, asked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "overrides_of", lambda folder: [] if folder is None else [
        running.Override(("measure", "seed"), 9, "--seed 9")
    ])  # fmt: skip
    run(file(tmp_path), resume="left")
    ((found, out, _, resume),) = asked
    assert (found.suite.measure.seed, out, resume) == (9, None, Path("left"))
    with pytest.raises(UsageError, match="out"):
        run(file(tmp_path), resume="left", out="o")


def test_a_target_takes_no_folder(tmp_path: Path, asked: list[Any]) -> None:
    with pytest.raises(UsageError, match="data"):
        run(file(tmp_path, 'dataset: {kind: target, target: "a:b"}\n'), data=tmp_path)
    assert asked == []


def test_a_run_that_a_signal_ended_is_an_interrupt_that_says_where_it_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = SimpleNamespace(run=None, folder=Path("there"), stopped_by=2)
    monkeypatch.setattr(running, "run_suite", lambda *_: result)
    with pytest.raises(KeyboardInterrupt, match="there"):
        run(file(tmp_path))


@pytest.mark.parametrize(("values", "found"), [("auto", "auto"), ([0, 2], [0, 2]), (range(2), [0, 1])])
def test_a_program_asks_for_an_axis_as_a_suite_does(values: Any, found: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def loads(_: Path, overrides: Any) -> Any:
        asked.extend(overrides)
        raise UsageError("enough")

    monkeypatch.setattr(running, "load_suite", loads)
    with pytest.raises(UsageError, match="enough"):
        run("s.yaml", axes={"num_workers": values})
    assert [one.value for one in asked] == [found]
