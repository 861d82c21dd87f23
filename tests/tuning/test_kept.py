"""What answers are kept by: all that makes a loader another one, found in a short time."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler, Subset

from loaderbench.tuning.api import Kept, keep_answer, kept_answer
from loaderbench.tuning.described import described


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOADERBENCH_CACHE", str(tmp_path / "cache"))


class Rows:
    def __init__(self, transform: Any = None) -> None:
        self.transform = transform

    def __len__(self) -> int:
        return 1_024

    def __getitem__(self, index: int) -> int:
        return index


class Compose:
    def __init__(self, transforms: list[Any]) -> None:
        self.transforms = transforms


class Lambda:
    def __init__(self, lambd: Callable[..., Any]) -> None:
        self.lambd = lambd


class OwnResize:
    def __init__(self, size: int) -> None:
        self.size = size


class Slotted:
    __slots__ = ("__size", "unset")

    def __init__(self, size: int) -> None:
        self.__size = size


class Spoilt:
    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        raise RuntimeError("no length")

    def __repr__(self) -> str:
        raise KeyError("no words")

    def __getattr__(self, name: str) -> Any:
        raise ZeroDivisionError(name)


@dataclass
class Paths:
    paths: list[str]
    size: int = 0


def resized(image: Any, size: int = 0) -> Any:
    return image, size


def closure(size: int) -> Callable[[Any], Any]:
    return lambda image: (image, size)


def with_default(size: int) -> Callable[[Any], Any]:
    return lambda image, size=size: (image, size)


def with_keyword_default(size: int) -> Callable[[Any], Any]:
    def resize(image: Any, *, size: int = size) -> Any:
        return image, size

    return resize


def deep(size: int) -> Any:
    held: Any = size
    for _ in range(20):
        held = SimpleNamespace(held=held)
    return held


TRANSFORMS: dict[str, Callable[[int], Any]] = {
    "closure": closure,
    "default": with_default,
    "keyword-only default": with_keyword_default,
    "partial, positional": lambda size: partial(resized, size),
    "partial, keyword": lambda size: partial(resized, size=size),
    "method": lambda size: Compose([size]).__init__,  # type: ignore[misc]
    "four levels down": lambda size: Compose([OwnResize(size)]),
    "partial in a lambda": lambda size: Compose([Lambda(partial(resized, size=size))]),
    "deep": deep,
    "slots": Slotted,
    "spoilt": Spoilt,
    "dataclass": lambda size: Paths([], size),
    "key": lambda size: {size: 0},
    "set": lambda size: {"a", f"b{size}"},
    "array": lambda size: np.zeros((2_000, size)),
    "bytes": lambda size: bytearray(range(size % 256)),
    "next to a long list": lambda size: (
        [[[0] * 10] * 10 for _ in range(1_000)] and [list(range(10**6)), OwnResize(size)]
    ),
    "code": lambda size: (lambda image: image) if size == 64 else (lambda image: -image),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_another_transform_is_another_question(name: str) -> None:
    def loader(size: int) -> DataLoader[int]:
        return DataLoader(Subset(Rows(TRANSFORMS[name](size)), range(100)), batch_size=4)  # type: ignore[arg-type]

    found = Kept({"num_workers": 2}, 20.0, ("a caveat",))
    keep_answer(loader(64), None, found)
    assert kept_answer(loader(64), None, 20.0) == found
    assert kept_answer(loader(1_024), None, 20.0) is None


class Generator:
    """Says where it is, as NumPy's and Pillow's objects do."""

    def __repr__(self) -> str:
        return f"Generator(PCG64) at 0x{id(self):X}"


def test_addresses_and_random_splits_are_others_in_the_next_process_and_make_no_difference() -> None:
    one, other = (Rows(Generator()) for _ in range(2))
    assert described(one) == described(other)
    one, other = (Subset(Rows(), random.Random(seed).sample(range(1_024), 500)) for seed in (1, 2))  # type: ignore[arg-type, assignment]
    assert described(one) == described(other)


NOTEBOOK = """
class Cell:
    def __len__(self):
        return 64

    def __getitem__(self, index):
        {body}
        return index
"""


def test_a_class_of_a_notebook_is_known_by_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(sys.modules["__main__"], "__file__", raising=False)
    made: list[Any] = []
    for body in ("pass", "pass", "sum(range(1_000))"):
        scope: dict[str, Any] = {"__name__": "__main__"}
        exec(compile(NOTEBOOK.format(body=body), "<ipython-input-1>", "exec"), scope)
        made.append(DataLoader(scope["Cell"](), batch_size=4))
    keep_answer(made[0], None, Kept({"num_workers": 2}, 20.0))
    assert kept_answer(made[1], None, 20.0) is not None
    assert kept_answer(made[2], None, 20.0) is None


SIDE = 64


class ByGlobal:
    def __call__(self, image: Any) -> Any:
        return image * SIDE


@pytest.mark.parametrize("transform", [ByGlobal(), lambda image: image * SIDE])
def test_another_global_value_is_another_question(transform: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    loader = DataLoader(Rows(transform), batch_size=4)  # type: ignore[arg-type]
    keep_answer(loader, None, Kept({"num_workers": 2}, 20.0))
    assert kept_answer(loader, None, 20.0) is not None
    monkeypatch.setitem(globals(), "SIDE", 128)
    assert kept_answer(loader, None, 20.0) is None


@pytest.mark.parametrize("name", ["closure", "default", "keyword-only default", "partial, keyword"])
def test_another_collate_function_is_another_question(name: str) -> None:
    first, same, other = (DataLoader(Rows(), collate_fn=TRANSFORMS[name](size)) for size in (8, 8, 9))  # type: ignore[var-annotated]
    keep_answer(first, None, Kept({"num_workers": 2}, 20.0))
    assert kept_answer(same, None, 20.0) is not None
    assert kept_answer(other, None, 20.0) is None


def by_batches(size: int) -> DataLoader[int]:
    batches = BatchSampler(SequentialSampler(range(1_024)), size, drop_last=False)
    return DataLoader(Rows(), batch_sampler=batches)  # type: ignore[arg-type]


def with_workers(**arguments: Any) -> DataLoader[int]:
    return DataLoader(Rows(), num_workers=1, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("loader", "other"),
    [
        (by_batches(4), by_batches(512)),
        (with_workers(multiprocessing_context="fork"), with_workers(multiprocessing_context="spawn")),
        (with_workers(), with_workers(timeout=60)),
        (with_workers(), with_workers(in_order=False)),
    ],
)
def test_another_way_to_load_is_another_question(loader: DataLoader[int], other: DataLoader[int]) -> None:
    keep_answer(loader, None, Kept({"num_workers": 2}, 20.0))
    assert kept_answer(loader, None, 20.0) is not None
    assert kept_answer(other, None, 20.0) is None


@pytest.mark.parametrize(
    ("workers", "budget_s", "is_found"), [(0, 10.0, True), (0, 20.0, True), (0, 60.0, False), (2, 60.0, True)]
)
def test_a_larger_budget_measures_again_where_a_smaller_one_found_no_change(
    workers: int, budget_s: float, is_found: bool
) -> None:
    loader: DataLoader[int] = DataLoader(Rows())  # type: ignore[arg-type]
    keep_answer(loader, None, Kept({"num_workers": workers}, 20.0))
    assert (kept_answer(loader, None, budget_s) is not None) is is_found


def test_what_holds_itself_comes_to_an_end() -> None:
    part = Compose([])
    part.transforms.append(part)
    other = Compose([Compose([])])
    assert described(part) == described(part) != described(other)


@pytest.mark.timed
def test_a_million_paths_take_no_time_and_many_objects_end() -> None:
    few, paths = ([f"/data/{number}.jpg" for number in range(count)] for count in (1, 1_000_000))
    described(Rows(few), Paths(few), partial(resized, few), OwnResize(0), np.zeros(1))  # reads the files of the classes
    wide = [[[[OwnResize(0) for _ in range(50)] for _ in range(50)] for _ in range(2)] for _ in range(4)]
    parts = [Rows(paths), Paths(paths), partial(resized, paths), dict.fromkeys(paths), set(paths), wide]
    parts += [np.zeros(10**8, dtype=np.uint8), bytes(10**8), array("d", bytes(8 * 10**6))]
    begin_s = time.process_time()
    described(*parts)
    assert time.process_time() - begin_s < 0.5


PROGRAM = """\
import logging, pathlib
from functools import partial
from loaderbench.tuning.described import described

class Rows:
    def __init__(self):
        self.log = logging.getLogger("rows")
        self.kinds = {"cat", "dog", "bird"}
        self.root = pathlib.Path("/data")
        self.transform = partial(lambda image, size: image, size=3)

rows = Rows()
first = described(rows)
str(rows.root), hash(rows.root), rows.log.warning, logging.getLogger("other")
assert described(rows) == first
print(first)
"""


def test_the_next_process_describes_the_same_alike(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    printed = {
        subprocess.run(
            [sys.executable, "program.py"],
            cwd=tmp_path,
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(printed) == 1
