"""A loader's name is the one that the user's own code gives it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from torch.utils.data import DataLoader

from loaderbench.script.naming import Place, place_of


def logged(iterable: object) -> Iterator[Place]:
    yield place_of(iterable)


def trained(loader: object) -> Place:
    return next(logged(loader))


class Trainer:
    def __init__(self, loader: object) -> None:
        self.held = loader

    def fit(self) -> Place:
        return place_of(self.held)


def test_the_name_is_that_of_the_outermost_variable() -> None:
    train_loader = DataLoader([1, 2])
    place = trained(train_loader)
    assert (place.name, place.file) == ("train_loader", __file__)


def test_without_a_variable_it_is_that_of_the_attribute() -> None:
    assert Trainer(DataLoader([1, 2])).fit().name == "held"


def test_a_loader_that_an_object_wraps_is_called_like_that() -> None:
    wrapped = Trainer(DataLoader([1, 2]))
    assert place_of(wrapped.held).name == "wrapped"


def test_one_of_a_dictionary_or_a_sequence_is_called_by_its_key() -> None:
    loaders = {name: DataLoader([1, 2]) for name in ("train", "val")}
    assert [place_of(loaders[name]).name for name in loaders] == ["loaders['train']", "loaders['val']"]
    folds = [DataLoader([1, 2]), DataLoader([1, 2])]
    assert place_of(folds[1]).name == "folds[1]"


class Lazy:
    """As those of werkzeug and Django: it is made when its class answers a question, and may not be made yet."""

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        raise AssertionError("it was made")

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        raise AssertionError("it was made")

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"used outside of its context: {name}")


def test_a_lazy_object_among_the_variables_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "settings", Lazy())
    assert place_of(Trainer(DataLoader([1, 2])).held).name == "list loader"
    held = Trainer([DataLoader([1, 2])])
    assert _name_in_a_list(held.held) == "loaders[0]"


def _name_in_a_list(loaders: Any) -> str:
    here = Lazy()
    name = place_of(loaders[0]).name
    del here
    return name


def test_a_container_of_the_user_s_own_is_read_without_its_code() -> None:
    class Loaders(dict[str, object]):
        def items(self) -> Any:
            raise AssertionError("it was asked")

    loaders = Loaders(train=DataLoader([1, 2]))
    assert place_of(loaders["train"]).name == "loaders['train']"


def test_whatever_is_raised_a_loader_has_a_name() -> None:
    class Own(DataLoader[int]):
        @property
        def dataset(self) -> Any:
            raise RuntimeError("there is none")

    assert place_of(Own.__new__(Own)).name == "Own loader"


def test_without_any_name_it_is_called_by_its_dataset() -> None:
    assert place_of(DataLoader([1, 2])).name == "list loader"


class Keeping:
    """Passes on the loaders that it keeps."""

    def __init__(self) -> None:
        self.train_loader = DataLoader([1, 2])
        self.loaders = {"val": DataLoader([1, 2])}

    def fit(self) -> Place:
        return trained(self.train_loader)

    def validate(self) -> Place:
        return trained(self.loaders["val"])


def test_a_loader_that_is_passed_on_keeps_the_name_of_its_attribute_or_key() -> None:
    assert Keeping().fit().name == "train_loader"
    assert Keeping().validate().name == "loaders['val']"
    loaders = {"train": DataLoader([1, 2])}
    assert trained(loaders["train"]).name == "loaders['train']"


def test_a_key_is_a_better_name_than_the_variable_of_a_loop() -> None:
    loaders = {name: DataLoader([1, 2]) for name in ("train", "val")}
    names = [place_of(loader).name for _, loader in loaders.items()]
    for number, (_, own) in enumerate(loaders.items()):
        names[number] += f" {place_of(own).name} {trained(own).name}"
    assert names == [" ".join([f"loaders['{name}']"] * 3) for name in ("train", "val")]


def test_without_a_key_it_is_the_variable_of_the_loop() -> None:
    for own in [DataLoader([1, 2])]:
        assert (place_of(own).name, trained(own).name) == ("own", "own")


def test_a_variable_of_its_own_is_a_better_name_than_a_key() -> None:
    train_loader = DataLoader([1, 2])
    loaders = {"train": train_loader}
    assert trained(loaders["train"]).name == "train_loader"
