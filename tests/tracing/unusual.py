"""Datasets and transforms that look at themselves, keep themselves in unusual ways, or would notice a stranger."""

from __future__ import annotations

import copy
import functools
import pickle
from collections import namedtuple
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import torch
from torch import nn
from torch.utils.data import Dataset, IterableDataset
from torchvision.transforms import Compose

LENGTH = 8


class Base(Dataset[Any]):
    def __init__(self) -> None:
        self.numbers = list(range(LENGTH))

    def __len__(self) -> int:
        return LENGTH

    def __getitem__(self, index: int) -> Any:
        return self.numbers[index]


class Cached(Base):
    @functools.cache  # noqa: B019 - as users write it
    def load(self, index: int) -> int:
        return index * 2

    def __getitem__(self, index: int) -> Any:
        return self.load(index)


class OfDict(dict[int, int]):
    def __len__(self) -> int:
        return LENGTH

    def __getitem__(self, index: int) -> int:
        return self.get(index, 7)


class Times:
    def __init__(self, factor: int = 3) -> None:
        self.factor = factor

    def __call__(self, value: Any) -> Any:
        return value * self.factor


class Slotted:
    __slots__ = ("factor",)

    def __init__(self) -> None:
        self.factor = 5

    def __call__(self, value: Any) -> Any:
        return value * self.factor


class Copies(Base):
    def __init__(self) -> None:
        super().__init__()
        self.transform = Times()

    def __getitem__(self, index: int) -> Any:
        own = copy.copy(self.transform)
        own.factor = index
        return own(index) + copy.deepcopy(self.transform)(index)


class LooksAtParts(Base):
    """Reads its transforms' attributes, and finds them where it put them."""

    def __init__(self) -> None:
        super().__init__()
        self.slotted, self.times = Slotted(), Times()
        self.partial = functools.partial(pow, 2)
        self.function = Times(2).__call__
        self.transform = Compose([self.times, self.slotted, _double])
        self.known = {self.times: 1}

    def __getitem__(self, index: int) -> Any:
        assert self.known[self.times] == 1
        assert self.transform.transforms.index(self.times) == 0
        assert isinstance(self.partial, functools.partial)
        return self.slotted.factor + self.partial(index) + self.function(index) + self.transform(index)


def _double(value: Any) -> Any:
    return value * 2


class LooksAtItself(Base):
    def __getitem__(self, index: int) -> Any:
        assert self.__class__ is LooksAtItself
        again = pickle.loads(pickle.dumps(self))
        assert type(again) is LooksAtItself
        return super(self.__class__, self).__getitem__(index) + len(again.numbers)


class AsksForItsType(Base):
    """With `super(type(self), self)`, which never ends in a subclass."""

    def __getitem__(self, index: int) -> Any:
        return super(type(self), self).__getitem__(index)


class Cyclic(Base):
    def __init__(self) -> None:
        super().__init__()
        self.parent = self


Pair = namedtuple("Pair", "first second")


class Holds(Base):
    def __init__(self) -> None:
        super().__init__()
        self.pair = Pair(Cached(), Copies())
        self.scratch = 0

    def __getitem__(self, index: int) -> Any:
        self.scratch = index
        del self.scratch
        return self.pair.first[index] + self.pair.second[index]


class Meta(type):
    made: ClassVar[list[str]] = []

    def __init__(cls, name: str, bases: tuple[type, ...], members: dict[str, Any]) -> None:
        super().__init__(name, bases, members)
        Meta.made.append(name)


class WithMeta(Base, metaclass=type("Both", (Meta, type(Base)), {})):
    pass


class Told(Base):
    names: ClassVar[list[str]] = []

    def __init_subclass__(cls) -> None:
        Told.names.append(cls.__name__)


@dataclass(frozen=True)
class Frozen(Dataset[Any]):
    length: int = LENGTH

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        return index + self.length


class Forwards(Base):
    """Sets everything on what it wraps."""

    def __init__(self) -> None:
        object.__setattr__(self, "inner", Base())

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.inner, name, value)

    def __getitem__(self, index: int) -> Any:
        assert isinstance(self.inner, Base)
        return self.inner[index]


class Module(nn.Module):
    """A dataset that is a network, with its transforms in a Sequential."""

    def __init__(self) -> None:
        super().__init__()
        self.transform = nn.Sequential(nn.Identity(), nn.ReLU())

    def __len__(self) -> int:
        return LENGTH

    def __getitem__(self, index: int) -> Any:
        return self.transform(torch.tensor(float(index - 3)))


class Closes(Base):
    """Ends something when it goes."""

    closed = 0

    def __del__(self) -> None:
        Closes.closed += 1


class CallsItself(Base):
    """Takes more than an index where it calls its own `__getitem__`, as datasets that skip bad samples do."""

    def __getitem__(self, index: int, retry: int = 0, *, add: int = 0) -> Any:
        if retry == 0:
            return self.__getitem__(index, 1)
        return self.__getitem__(index=index, retry=2, add=1) if retry == 1 else self.numbers[index] + add


class CallsItsBatch(CallsItself):
    def __getitems__(self, indices: list[int], add: int = 0, *, more: int = 0) -> list[Any]:
        return [self[index] + add for index in indices] if more else self.__getitems__(indices, 1, more=1)


def doubled(number: int) -> int:
    return number * 2


NAMES = {doubled: "doubled"}


class HoldsAFunction(Base):
    """Looks its function up, and is pickled while it makes a sample, as for a cache or another process."""

    def __init__(self) -> None:
        super().__init__()
        self.loader = doubled

    def __getitem__(self, index: int) -> Any:
        copied = pickle.loads(pickle.dumps(self))
        assert (NAMES[self.loader], self.loader.__name__, copied.loader) == ("doubled", "doubled", doubled)
        return self.loader(index)


class Remote:
    """Any attribute is a function of a server."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: pytest.fail(f"called {name}")

    def __call__(self, index: int) -> int:
        return index + 1


class HoldsAServer(Base):
    def __init__(self) -> None:
        super().__init__()
        self.server = Remote()

    def __getitem__(self, index: int) -> Any:
        return self.server(index)


class Numbered:
    """An iterator of the user's own, with more than torch asks for."""

    def __init__(self) -> None:
        self.position = 0

    def __iter__(self) -> Numbered:
        return self

    def __next__(self) -> int:
        if self.position == LENGTH:
            raise StopIteration
        self.position += 1
        return self.position

    def close(self) -> None:
        self.position = LENGTH


class Inner(IterableDataset[Any]):
    def __iter__(self) -> Numbered:
        return Numbered()


class Outer(IterableDataset[Any]):
    """A stream of another one's samples, whose iterator it looks at and closes."""

    def __init__(self) -> None:
        self.inner = Inner()

    def __iter__(self) -> Iterator[Any]:
        numbers: Any = iter(self.inner)
        for number in numbers:
            yield 100 * number + numbers.position
        numbers.close()


class WithMetaByTheBatch(WithMeta):
    def __getitems__(self, indices: list[int]) -> list[Any]:
        return [self[index] for index in indices]


UNUSUAL = (
    Base, Cached, OfDict, Copies, LooksAtParts, LooksAtItself, AsksForItsType, Cyclic, Holds, WithMeta, Told, Frozen,
    Forwards, Module, Closes, CallsItself, CallsItsBatch, HoldsAFunction, HoldsAServer, Outer,
    WithMetaByTheBatch,
)  # fmt: skip
