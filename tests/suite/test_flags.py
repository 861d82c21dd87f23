"""Flags that change a suite: what they drop need not be set, and text stays the text that was written."""

from __future__ import annotations

from pathlib import Path

import pytest

from loaderbench.commands.overrides import load_with_flags
from loaderbench.errors import SuiteError
from loaderbench.suite import LoadedSuite


def load(folder: Path, text: str, axes: list[str], data: str | None = None) -> LoadedSuite:
    (folder / "s.yaml").write_text(text)
    return load_with_flags(folder / "s.yaml", data=None if data is None else Path(data), axes=axes, measure={})


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LB_NOT_SET", raising=False)


@pytest.mark.parametrize(
    ("text", "axes"),
    [
        ("loader: {num_workers: ${LB_NOT_SET}}", ["num_workers=2"]),
        ("dataset: {root: ${LB_NOT_SET}}", ["root=a,b"]),
        ("sweep: {loader: [threads], threads: [1, ${LB_NOT_SET}]}", ["loader=torch"]),
        ("sweep: {loader: [threads], threads: [1, 2]}\nbaseline: {threads: ${LB_NOT_SET}}", ["loader=torch"]),
    ],
)
def test_a_variable_in_a_value_that_an_axis_drops_need_not_be_set(tmp_path: Path, text: str, axes: list[str]) -> None:
    suite = load(tmp_path, text, axes).suite
    axis, _, values = axes[0].partition("=")
    assert [str(value) for value in suite.sweep[axis]] == values.split(",")
    assert "${" not in str([suite.loader, suite.sweep, suite.baseline, suite.dataset])


def test_a_variable_in_a_folder_that_data_drops_need_not_be_set(tmp_path: Path) -> None:
    text = "sweep: {root: [a, '${LB_NOT_SET}']}\nbaseline: {root: '${LB_NOT_SET}'}"
    suite = load(tmp_path, text, [], data="ph").suite
    assert suite.sweep == suite.baseline == {}
    assert suite.dataset.model_dump()["root"] == str(Path("ph").resolve())


@pytest.mark.parametrize(
    ("text", "axes"),
    [
        ("loader: {num_workers: ${LB_NOT_SET}}", ["batch_size=2"]),
        ("dataset: {decoder: ${LB_NOT_SET}}", ["root=a,b"]),
        ("sweep: {loader: [threads], threads: [1, ${LB_NOT_SET}]}", ["loader=torch,threads"]),
    ],
)
def test_a_variable_that_still_has_an_effect_has_to_be_set(tmp_path: Path, text: str, axes: list[str]) -> None:
    with pytest.raises(SuiteError, match="environment variable LB_NOT_SET is not set"):
        load(tmp_path, text, axes)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ("01,02", ["01", "02"]),
        ("1e5", ["1e5"]),
        ("2024, 1.50,0x10", ["2024", "1.50", "0x10"]),
        ("true,'a,b'", ["true", "a,b"]),
        ("a,null", ["a", None]),
    ],
)
def test_a_folder_keeps_the_name_that_was_written(tmp_path: Path, values: str, expected: list[str | None]) -> None:
    assert load(tmp_path, "name: s", [f"root={values}"]).suite.sweep["root"] == expected


def test_numbers_of_other_axes_stay_numbers(tmp_path: Path) -> None:
    suite = load(tmp_path, "name: s", ["num_workers=01,2", "pin_memory=true"]).suite
    assert (suite.sweep["num_workers"], suite.sweep["pin_memory"]) == ([1, 2], [True])
