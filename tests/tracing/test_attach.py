"""Objects pass for what they are while they are timed, and functions are put back."""

from __future__ import annotations

import builtins
import copy
import functools
import inspect
import io
import os
import pickle
import sys
import threading
from abc import ABCMeta
from pathlib import Path
from typing import Any, ClassVar

import pytest
from planted import First, FolderStyle
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import Compose

from loaderbench.tracing import active, block as layout, hooks
from loaderbench.tracing.attach import Attachment
from loaderbench.tracing.block import BLOCK_BYTES, PATH_BYTES, Block
from loaderbench.tracing.loader import LoaderTrace
from loaderbench.tracing.parts import Finder
from loaderbench.tracing.tracer import Tracer


@pytest.fixture
def tracer() -> Tracer:
    block = Block(bytearray(BLOCK_BYTES))
    block.header[layout.ENABLED] = 1.0
    return Tracer(block)


def test_a_timed_object_is_copied_and_pickled_as_what_it_is(tracer: Tracer) -> None:
    dataset = FolderStyle()
    attachment = Attachment(Finder(tracer).dataset(dataset))
    attachment.attach()
    step = dataset.transform.transforms[0]
    copies = [copy.copy(step), copy.deepcopy(step), pickle.loads(pickle.dumps(step))]
    attachment.detach()
    assert {type(found) for found in copies} == {First}
    assert type(step) is First


class Registering(ABCMeta):
    """A metaclass that keeps a list of its classes, as that of Albumentations does."""

    made: ClassVar[list[str]] = []

    def __new__(cls, *made: Any) -> Any:
        cls.made.append(made[0])
        return super().__new__(cls, *made)


class Transform(metaclass=Registering):
    def __call__(self, image: Any) -> Any:
        return image


class Flip(Transform):
    pass


class Flipped(Dataset[Any]):
    def __init__(self) -> None:
        self.tf = Compose([Flip()])

    def __getitem__(self, index: int) -> Any:
        assert isinstance(self.tf.transforms[0], Transform)
        assert not isinstance(index, Transform)
        return self.tf(index)

    def __len__(self) -> int:
        return 4


def test_transforms_whose_metaclass_registers_classes_are_timed_unnoticed() -> None:
    known = list(Registering.made)
    trace = LoaderTrace(loader := DataLoader(Flipped(), batch_size=2))
    batches = list(trace.batches())
    parts = trace.read().parts
    trace.stop()
    assert ("transform", "Flip") in parts
    assert [batch.tolist() for batch in batches] == [[0, 1], [2, 3]]
    assert Registering.made == known == ["Transform", "Flip"]
    assert type(loader.dataset.tf.transforms[0]) is Flip


def test_a_function_that_the_user_replaced_meanwhile_stays_the_user_s(tracer: Tracer) -> None:
    dataset: Any = FolderStyle()
    attachment = Attachment(Finder(tracer).dataset(dataset))
    attachment.attach()
    dataset.loader = len
    attachment.detach()
    assert dataset.loader is len


def test_a_patch_of_open_made_meanwhile_is_left_alone() -> None:
    original = builtins.open
    hooks.install()
    mine: Any = functools.partial(original)
    builtins.open = mine
    hooks.remove()
    kept, builtins.open = builtins.open, original
    assert kept is mine
    assert io.open is original


def test_an_open_that_the_user_replaced_before_is_called(
    tracer: Tracer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cached.bin").write_bytes(b"cached")
    (tmp_path / "raw.bin").write_bytes(b"raw")
    real = open

    def cached(file: Path, *args: Any) -> Any:
        return real(file.with_name("cached.bin"), *args)

    monkeypatch.setattr(builtins, "open", cached)
    hooks.install()
    active.set_tracer(tracer)
    try:
        found = tracer.sample(0, lambda: open(tmp_path / "raw.bin", "rb").read())  # noqa: PTH123, SIM115
    finally:
        active.set_tracer(None)
        hooks.remove()
    assert found == b"cached"
    assert builtins.open is cached


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_of_a_fork_need_not_wait_for_a_thread_that_is_not_there() -> None:
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with hooks._lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    if (child := os.fork()) == 0:
        os._exit(0 if hooks._lock.acquire(timeout=5) else 1)
    done.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0


def test_hooks_stay_until_the_last_of_two_loaders_is_done() -> None:
    original = builtins.open
    hooks.install()
    hooks.install()
    hooks.remove()
    assert builtins.open is not original
    hooks.remove()
    assert builtins.open is original


def test_files_opened_while_timed_are_files_in_every_respect(tracer: Tracer, tmp_path: Path) -> None:
    path = tmp_path / "some.bin"
    path.write_bytes(os.urandom(100_000))
    active.set_tracer(tracer)
    hooks.install()
    try:
        tracer.sample(0, read_in_every_way, path)
        missing = tracer.sample(1, error_of, tmp_path / "missing")
    finally:
        hooks.remove()
        active.set_tracer(None)
    tracer.flush()
    places = {name: place for place, name in enumerate(tracer.block.names())}
    seen = 4 if sys.version_info >= (3, 11) else 3  # pathlib of 3.10 keeps an `open` of its own
    assert tracer.block.calls[places["read", ""]] >= seen
    assert missing == error_of(tmp_path / "missing")


def read_in_every_way(path: Path) -> None:
    with open(path, "rb") as file:  # noqa: PTH123 - that is what is tested
        assert isinstance(file, io.BufferedReader)
        assert (file.name, file.mode) == (str(path), "rb")
        assert os.fstat(file.fileno()).st_size == 100_000
        whole = file.read()
        file.seek(10)
        assert file.read(5) == whole[10:15]
    assert path.read_bytes() == whole
    with path.open("rb") as file:
        assert file.peek(1)[:1] == whole[:1]


def error_of(path: Path) -> str:
    try:
        open(path, "rb").close()  # noqa: PTH123
    except FileNotFoundError as error:
        return f"{error} {error.filename!r}"
    return "found"


def test_a_long_path_keeps_its_file_name() -> None:
    block = Block(bytearray(BLOCK_BYTES))
    block.set_path(0, "/photos/" + "\u00e9" * PATH_BYTES + "/cat.jpg")
    assert block.path(0).startswith("...")
    assert block.path(0).endswith("/cat.jpg")


def test_more_stages_than_there_is_room_for_are_part_of_the_sample(tracer: Tracer) -> None:
    places = {tracer.place("own", str(number)) for number in range(2 * layout.MAX_STAGES)}
    assert len(places) <= layout.MAX_STAGES
    assert tracer.place("own", "one more") == tracer.place("sample")


class Shared(Dataset[int]):
    """Keeps a count and an open reader in its class."""

    count = 0
    _reader: ClassVar[list[int] | None] = None

    def __len__(self) -> int:
        return 8

    @classmethod
    def reader(cls) -> list[int]:
        if cls._reader is None:
            cls._reader = [*range(8)]
        return cls._reader

    def __getitem__(self, index: int) -> int:
        type(self).count += 1
        type(self).__doc__ = "changed"
        return self.reader()[index]


def test_attributes_that_a_dataset_sets_in_its_class_are_there_after_each_batch() -> None:
    class Own(Shared):
        pass

    loader = DataLoader(Own(), batch_size=2)
    counts = [Own.count for _ in LoaderTrace(loader).batches()]
    assert counts == [2, 4, 6, 8]
    assert Own._reader == [*range(8)]
    assert (Shared.count, Shared._reader) == (0, None)


@pytest.mark.parametrize("function", [lambda image, size=3: [image] * size, functools.partial(min, 3), int.from_bytes])
def test_a_timed_function_has_the_signature_of_the_original(tracer: Tracer, function: Any) -> None:
    class Holding(Dataset[Any]):
        def __init__(self) -> None:
            self.transform = function

        def __getitem__(self, index: int) -> Any:
            return index

    dataset = Holding()
    attachment = Attachment(Finder(tracer).dataset(dataset))
    wanted = signature_of(function)
    attachment.attach()
    try:
        assert dataset.transform is not function
        assert signature_of(dataset.transform) == wanted
    finally:
        attachment.detach()


def signature_of(function: Any) -> str:
    """As text; functions without one raise `ValueError`."""
    try:
        return str(inspect.signature(function))
    except ValueError:
        return "none"
