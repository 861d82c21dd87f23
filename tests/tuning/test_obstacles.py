"""Loaders that cannot be measured in copies of their process, each with its reason."""

from __future__ import annotations

import csv
import io
import itertools
import multiprocessing
import os
import random
import socket
import sqlite3
import sys
import tempfile
import threading
import zipfile
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import MethodType, SimpleNamespace
from typing import Any

import pytest
import torch
from plain_streams import Divided, Stream, divides
from torch.utils.data import DataLoader

from loaderbench.script.fastai import FastaiLoader
from loaderbench.tuning.forked import NO_FORK, NOT_OF_TORCH, why_not_tried


class Holding:
    """A dataset that holds something, some levels down, as a cache or a reader does."""

    def __init__(self, held: Any, levels: int = 0) -> None:
        self.parts = {"reader": [held if levels == 0 else Holding(held, levels - 1)]}


def loader_over(held: Any, levels: int = 0, **parts: Any) -> Any:
    return SimpleNamespace(**{"dataset": Holding(held, levels), "sampler": None, "collate_fn": max, **parts})


class Inherited(Divided):
    pass


class Divider:
    def __call__(self, worker: int) -> None:
        divides(worker)


def seeds(worker: int, seed: int = 0) -> None:
    """As torch's notes on reproducibility have it."""
    random.seed(torch.initial_seed() % 2**32 + worker + seed)


def share_of_worker() -> slice:
    info = torch.utils.data.get_worker_info()
    return slice(info.id, None, info.num_workers) if info else slice(None)


class ByHelper(Stream):
    def __iter__(self) -> Iterator[int]:
        yield from range(8)[share_of_worker()]


asked_for = torch.utils.data.get_worker_info


class ByRenamed(Stream):
    def __iter__(self) -> Iterator[int]:
        yield from range(8)[asked_for() is None :]


def test_an_iterable_dataset_has_to_divide_its_samples_among_workers() -> None:
    why = why_not_tried(DataLoader(Stream()))
    assert why == "each worker would yield every sample of this IterableDataset (Stream does not call get_worker_info)"
    assert why_not_tried(DataLoader(Stream(), num_workers=1)) == why
    for divided in (
        DataLoader(Divided()),
        DataLoader(Inherited()),
        DataLoader(Stream(), worker_init_fn=divides),
        DataLoader(Stream(), worker_init_fn=partial(divides, seed=1)),
        DataLoader(Stream(), worker_init_fn=Divider()),
        DataLoader(ByHelper()),
        DataLoader(ByRenamed()),
        DataLoader(Stream(), num_workers=2),
    ):
        assert why_not_tried(divided) == ""
    for init in (seeds, partial(seeds, seed=1), print):
        assert why_not_tried(DataLoader(Stream(), worker_init_fn=init)) == why, "that gives each worker a seed only"


class OnDevice(torch.Tensor):
    """A tensor that says it is on a GPU, where there is none."""

    is_cuda = True  # type: ignore[assignment]


@pytest.mark.parametrize("levels", [0, 1, 4])
def test_what_a_copy_cannot_share_is_named_with_the_part_that_holds_it(levels: int, tmp_path: Path) -> None:
    with socket.socket() as connection, sqlite3.connect(":memory:") as base, tempfile.TemporaryFile() as file:
        for held, word in ((connection, "connection"), (base, "database"), (file, "file")):
            why = why_not_tried(loader_over(held, levels))
            assert why.startswith("the dataset (Holding) holds an open ")
            assert f"open {word}" in why
            assert "in each worker instead" in why
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        assert "open file" in why_not_tried(loader_over(archive, levels))
    base.close()


class Slots:
    __slots__ = ("file", "unset")

    def __init__(self, file: Any) -> None:
        self.file = file


def test_files_are_found_in_slots_and_in_containers_of_all_kinds(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    with (tmp_path / "a.txt").open() as file:
        for held in (file, Slots(file), deque([file]), defaultdict(list, a=[file]), OrderedDict(a=file)):
            assert "an open file" in why_not_tried(loader_over(held))
    assert why_not_tried(loader_over(Slots(io.BytesIO()))) == ""
    assert why_not_tried(loader_over(file)) == ""  # it is closed
    with (tmp_path / "log.txt").open("a") as log:
        assert why_not_tried(loader_over([log, sys.stderr, sys.stdin])) == ""


class Reader:
    def __init__(self, file: Any) -> None:
        self.file = file

    def fetch(self, index: int) -> Any:
        self.file.seek(index)
        return self.file.read(1)


def test_files_are_found_behind_methods_closures_defaults_and_partials(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("abc")
    with (tmp_path / "a.txt").open() as file:
        reader = Reader(file)
        ways: list[Any] = [
            Reader(file).fetch,
            file.read,
            lambda index: Reader(file).fetch(index),
            lambda index, read=reader: read.fetch(index),
            partial(Reader.fetch, Reader(file)),
        ]
        for way in ways:
            assert "an open file" in why_not_tried(loader_over(way))
            if not isinstance(way, MethodType):
                assert "an open file" in why_not_tried(loader_over(1, collate_fn=way))
        assert why_not_tried(loader_over(1, collate_fn=Reader(file).fetch)) == "", "a model's method holds much more"


def test_queues_and_pipes_would_be_shared() -> None:
    for held in (multiprocessing.Queue(), multiprocessing.SimpleQueue(), *multiprocessing.Pipe()):
        assert "a queue or a pipe, which processes cannot share" in why_not_tried(loader_over(held))


def test_threads_are_not_in_a_copy() -> None:
    with ThreadPoolExecutor(1) as pool:
        assert "a thread or a pool of them" in why_not_tried(loader_over(pool))
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    assert "a thread or a pool of them" in why_not_tried(loader_over(thread))
    done.set()
    thread.join()
    assert why_not_tried(loader_over(thread)) == ""


class KeepsIterator(DataLoader[Any]):
    def __init__(self) -> None:
        super().__init__([1, 2])  # type: ignore[arg-type]
        self.iterator = (number for number in range(3))


def test_an_iterator_of_the_loaders_own_would_be_shared() -> None:
    assert why_not_tried(KeepsIterator()).startswith("KeepsIterator keeps an iterator in its attribute iterator")


class OneByOne(Divided):
    """An iterator by its class, which begins anew with each epoch."""

    def __next__(self) -> int:
        raise StopIteration


def test_a_dataset_may_be_an_iterator_but_no_generator() -> None:
    assert why_not_tried(DataLoader(OneByOne())) == ""
    generator = (number for number in range(3))
    assert "an iterator in its attribute sampler" in why_not_tried(loader_over(1, sampler=generator))


def test_a_tensor_on_a_gpu_is_named() -> None:
    assert "a CUDA tensor" in why_not_tried(loader_over(torch.zeros(2).as_subclass(OnDevice)))
    assert why_not_tried(loader_over(torch.zeros(2))) == ""


def test_sampler_and_collate_function_are_looked_into_too() -> None:
    with tempfile.TemporaryFile() as file:
        assert why_not_tried(loader_over(1, sampler=Holding(file))).startswith("the sampler (Holding) ")
        assert why_not_tried(loader_over(1, collate_fn=Holding(file))).startswith("the collate_fn (Holding) ")


@pytest.mark.parametrize("held", [1, "text", [1] * 1_000_000, {"a": {1, 2}}, len, Path, torch, lambda: 1, None])
def test_what_a_copy_can_share_is_no_obstacle(held: Any) -> None:
    assert why_not_tried(loader_over(held)) == ""


def test_a_closed_file_and_a_circle_are_no_obstacles() -> None:
    with tempfile.TemporaryFile() as file:
        pass
    holding = Holding(file)
    holding.parts["reader"].append(holding)
    assert why_not_tried(loader_over(holding)) == ""


def test_code_of_the_dataset_is_not_called() -> None:
    class Guarded:
        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(f"asked for {name}")

    assert why_not_tried(loader_over([Guarded()])) == ""


def test_a_system_without_fork_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "fork")
    assert why_not_tried(loader_over(1)) == NO_FORK


def test_a_loader_that_is_not_torch_s_is_not_tried() -> None:
    of_fastai = FastaiLoader(SimpleNamespace(d=SimpleNamespace(dataset=[1], bs=1), worker_init_fn=None))
    assert why_not_tried(of_fastai) == NOT_OF_TORCH


def test_files_are_found_behind_iterators_and_generators(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a,b\n" * 9)

    def lines() -> Iterator[str]:
        with (tmp_path / "a.txt").open() as own:
            yield from own

    begun = lines()
    next(begun)
    with (tmp_path / "a.txt").open() as file:
        ways: list[Any] = [
            map(str.strip, file),
            csv.reader(file),
            csv.DictReader(file),
            (line for line in file),
            itertools.islice(file, 2),
            enumerate(zip(file, range(9), strict=False)),
            begun,
        ]
        for way in ways:
            assert "an open file" in why_not_tried(loader_over(way)), way
    begun.close()
    for harmless in (iter([1]), map(str.strip, ["a"]), (line for line in "abc"), begun):
        assert why_not_tried(loader_over(harmless)) == ""


def test_an_iterator_of_the_user_is_not_asked_for_anything() -> None:
    class Own:
        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(f"asked for {name}")

        def __next__(self) -> int:
            raise AssertionError("it was asked")

    assert why_not_tried(loader_over([Own(), map(str, Own.__mro__)])) == ""


def test_batch_sampler_and_worker_init_fn_are_looked_into_too() -> None:
    with tempfile.TemporaryFile() as file:
        assert why_not_tried(loader_over(1, batch_sampler=Holding(file))).startswith("the batch_sampler (Holding) ")
        why = why_not_tried(loader_over(1, worker_init_fn=partial(print, file)))
        assert why.startswith("the worker_init_fn (partial) holds an open file")


def test_without_workers_a_dataset_may_have_opened_a_file_with_its_first_sample() -> None:
    with tempfile.TemporaryFile() as file:
        why = why_not_tried(loader_over(file, num_workers=0))
        assert why.endswith("if that is the case, set num_workers=1 and tune again")
        assert "num_workers=1" not in why_not_tried(loader_over(file, num_workers=2))
    assert "num_workers=1" not in why_not_tried(loader_over(torch.zeros(2).as_subclass(OnDevice), num_workers=0))
