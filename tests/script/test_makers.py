"""The line of the user's code that made a loader."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import Any

import pytest
from torch.utils.data import DataLoader

from loaderbench.code_places import CodeLine
from loaderbench.script.hook import RecordedKind, is_recorded
from loaderbench.script.naming import Makers
from loaderbench.script.order import SITE, RecordOrder

LIBRARY = "/venv/lib/python3.11/site-packages/framework/loops.py"


class Loader:
    """Notes where it is made, as a changed `DataLoader` does."""

    def __init__(self, makers: Makers, dataset: Any = None) -> None:
        self.dataset = dataset
        makers.note(self)


class Own(Loader):
    """A subclass of the user's."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)


def by_library(source: str) -> Any:
    """A function of an installed package."""
    names: dict[str, Any] = {"Loader": Loader}
    exec(compile(source, LIBRARY, "exec"), names)
    return names["call"]


make = by_library("def call(*arguments): return Loader(*arguments)")


def line_here(offset: int = 0) -> int:
    import sys

    return sys._getframe(1).f_lineno + offset


def test_a_loader_is_made_where_its_class_is_called() -> None:
    makers = Makers()
    plain, own = Loader(makers), Own(makers)
    assert makers.of(plain) == makers.of(own) == CodeLine(__file__, line_here(-1))


def test_a_library_that_makes_one_is_called_from_a_line_of_the_user() -> None:
    makers = Makers()
    made = make(makers)
    assert makers.of(made) == CodeLine(__file__, line_here(-1), "A library")


def test_the_library_is_that_which_the_user_s_line_calls() -> None:
    """Hugging Face's Trainer lets accelerate create it."""
    makers, names = Makers(), dict[str, Any]({"Loader": Loader, "__name__": "inner.loaders"})
    exec(compile("def call(*arguments): return Loader(*arguments)", LIBRARY, "exec"), names)
    outer: dict[str, Any] = {"call": names["call"], "__name__": "outer.trainer"}
    exec(compile("def train(*arguments): return call(*arguments)", LIBRARY, "exec"), outer)
    made = outer["train"](makers)
    assert makers.of(made) == CodeLine(__file__, line_here(-1), "outer.trainer")


@pytest.mark.parametrize("parameters", ["obj, *rest", "*rest"])
def test_a_library_that_wraps_the_constructor_makes_no_loader(parameters: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lightning wraps `DataLoader.__init__` while it asks for the loaders of a module."""
    makers, names = Makers(), {"init": Loader.__init__}
    call = "init(obj, *rest)" if "obj" in parameters else "init(*rest)"
    exec(compile(f"def wrapper({parameters}): {call}", LIBRARY, "exec"), names)
    monkeypatch.setattr(Loader, "__init__", names["wrapper"])
    made = Loader(makers)
    assert makers.of(made) == CodeLine(__file__, line_here(-1))


def test_a_framework_s_copy_was_made_where_the_user_s_loader_was() -> None:
    makers, dataset = Makers(), [1]
    own = Loader(makers, dataset)
    at = CodeLine(__file__, line_here(-1))
    assert makers.of(make(makers, dataset)) == makers.of(own) == at
    assert makers.of(make(makers, [2])) != at


def test_a_loader_that_a_framework_replaced_is_remembered_by_its_dataset() -> None:
    makers, dataset = Makers(), Rows()
    Loader(makers, dataset)
    at = CodeLine(__file__, line_here(-1))
    gc.collect()
    assert makers.of(make(makers, dataset)) == at


class Unusual(Loader):
    """It has no hash, and for a while no dataset."""

    __hash__ = None  # type: ignore[assignment]

    def __getattribute__(self, name: str) -> Any:
        if name == "dataset":
            raise RuntimeError("not yet")
        return super().__getattribute__(name)


def test_a_loader_that_answers_nothing_has_no_line() -> None:
    assert Makers().of(Unusual.__new__(Unusual)) is None


class Rows(list[int]):
    """A dataset that can be referred to weakly."""


def test_a_loader_that_nobody_saw_has_no_line_and_none_is_kept_alive() -> None:
    makers = Makers()
    assert makers.of(Loader(Makers())) is None
    Loader(makers)
    gc.collect()
    assert len(makers._made) == 0


def test_a_recording_that_saw_no_epoch_leaves_torch_as_it_was(tmp_path: Path) -> None:
    before = DataLoader.__iter__, DataLoader.__init__
    recorded = RecordedKind(DataLoader, RecordOrder(folder=str(tmp_path), python_path=None))
    recorded.change()
    assert is_recorded(DataLoader)
    recorded.finish()
    assert (DataLoader.__iter__, DataLoader.__init__) == before
    assert not is_recorded(DataLoader)


@pytest.mark.parametrize(("own", "path"), [(None, [str(SITE)]), ("", [str(SITE)]), ("/mine", [str(SITE), "/mine"])])
def test_an_empty_python_path_adds_no_folder(own: str | None, path: list[str], tmp_path: Path) -> None:
    order = RecordOrder(folder=str(tmp_path), python_path=own)
    assert order.environment()["PYTHONPATH"].split(os.pathsep) == path


def test_of_many_loaders_over_few_datasets_few_places_are_kept() -> None:
    makers, datasets = Makers(), [set[int](), set[int]()]
    for number in range(1_000):
        Loader(makers, datasets[number % 2])
    assert len(makers._of_dataset) <= 64
    assert all(makers.of(make(makers, dataset)) is not None for dataset in datasets)
