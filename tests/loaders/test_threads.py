"""What holds for each loader whose threads run the dataset's own code: `threads` and `spdl`."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from command_line import loaderbench  # noqa: E402
from packed_text import packed  # noqa: E402
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset  # noqa: E402

from loaderbench.datasets.image_samples import ImageSamples, imagenet_eval  # noqa: E402
from loaderbench.errors import BadImageError  # noqa: E402
from loaderbench.imagenet import MEAN, STD  # noqa: E402
from loaderbench.loaders import Batches, LoaderBackend  # noqa: E402
from loaderbench.loaders.seeded import SeededSamples  # noqa: E402
from loaderbench.loaders.spdl_loader import Spdl  # noqa: E402
from loaderbench.loaders.thread_workers import LoadingThreads  # noqa: E402
from loaderbench.loaders.threads import Threads  # noqa: E402
from loaderbench.loaders.torch_loader import TorchLoader  # noqa: E402
from loaderbench.remedies.program import python_program  # noqa: E402

LONGEST_S = 30.0  # that a test waits for another thread

WITH_SPDL = pytest.mark.skipif(not Spdl().is_installed(), reason="SPDL is not installed")
BACKENDS = [pytest.param(Threads(), id="threads"), pytest.param(Spdl(), id="spdl", marks=WITH_SPDL)]
each_backend = pytest.mark.parametrize("backend", BACKENDS)


class Numbers(Dataset[Any]):
    """Its own number is a sample; counts how many were made, and by which threads."""

    def __init__(self, length: int = 12) -> None:
        self.length, self.made, self.threads = length, 0, set[int]()
        self.allowed, self.waits, self._lock = threading.Event(), threading.Event(), threading.Lock()
        self.allowed.set()

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        if not self.allowed.is_set():
            self.waits.set()
        self.allowed.wait(LONGEST_S)
        with self._lock:
            self.made += 1
            self.threads.add(threading.get_native_id())
        return torch.tensor(index)


class Fails(Numbers):
    def __getitem__(self, index: int) -> Any:
        if index == 7:
            raise KeyError(f"sample {index}")
        return super().__getitem__(index)


class InOneCall(Numbers):
    def __getitems__(self, indices: list[int]) -> list[Any]:
        return [torch.tensor(-index) for index in indices]


class Stream(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        return iter(range(6))


@contextmanager
def built(backend: LoaderBackend, source: Any, **arguments: Any) -> Iterator[Batches]:
    batches = backend.build(source, arguments, seed=3)
    try:
        yield batches
    finally:
        batches.close()


def drawn(backend: LoaderBackend, source: Any, batches: int, **arguments: Any) -> list[list[int]]:
    with built(backend, source, **arguments) as found:
        return [batch.tolist() for batch in islice(found.iterable, batches)]


def wait_for(holds: Callable[[], bool]) -> None:
    until_s = time.monotonic() + LONGEST_S
    while not holds():
        assert time.monotonic() < until_s, "not in time"
        time.sleep(0.005)


def alive(thread: int) -> bool:
    return Path(f"/proc/self/task/{thread}").exists()


@each_backend
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
def test_batches_are_those_of_torch_in_the_same_order(backend: LoaderBackend, shuffle: bool, threads: int) -> None:
    arguments = {"batch_size": 4, "shuffle": shuffle}
    theirs = drawn(TorchLoader(), Numbers(10), 12, **arguments, num_workers=0)
    assert drawn(backend, Numbers(10), 12, **arguments, threads=threads) == theirs


@each_backend
def test_shuffled_every_sample_comes_once_an_epoch_and_again_with_the_same_seed(backend: LoaderBackend) -> None:
    found = drawn(backend, Numbers(), 9, batch_size=4, shuffle=True, threads=2)
    epochs = [[*chain(*found[first : first + 3])] for first in (0, 3, 6)]
    assert [sorted(epoch) for epoch in epochs] == [list(range(12))] * 3
    assert epochs[0] != epochs[1]
    assert drawn(backend, Numbers(), 9, batch_size=4, shuffle=True, threads=2) == found


@each_backend
def test_images_are_exactly_those_of_torch(backend: LoaderBackend, photos: Path) -> None:
    samples = [(str(path), number % 3) for number, path in enumerate(sorted(photos.rglob("*.jpg"))[:8])]

    def images() -> ImageSamples:
        from torchvision.datasets.folder import pil_loader

        return ImageSamples(samples, pil_loader, imagenet_eval())

    with built(TorchLoader(), images(), batch_size=4, num_workers=0) as theirs:
        expected = list(islice(theirs.iterable, 2))
    with built(backend, images(), batch_size=4, threads=2) as ours:
        found = list(islice(ours.iterable, 2))
    for (image, label), (their_image, their_label) in zip(found, expected, strict=True):
        assert (image.shape, image.dtype, label.dtype) == ((4, 3, 224, 224), torch.float32, torch.int64)
        assert torch.equal(image, their_image)
        assert torch.equal(label, their_label)
    pixels = torch.cat([image for image, _ in found])
    unnormalized = pixels * torch.tensor(STD).view(3, 1, 1) + torch.tensor(MEAN).view(3, 1, 1)
    assert -1e-5 < float(unnormalized.min()) < float(unnormalized.max()) < 1 + 1e-5


@each_backend
def test_no_two_threads_draw_the_same_random_numbers(backend: LoaderBackend) -> None:
    class Noise(Numbers):
        def __getitem__(self, index: int) -> Any:
            return torch.rand((), dtype=torch.float64)

    with built(backend, Noise(), batch_size=4, threads=3) as found:
        values = torch.cat(list(islice(found.iterable, 60)))
    assert len(values.unique()) == 240
    assert abs(float(values.mean()) - 0.5) < 0.1


@each_backend
def test_a_dataset_that_makes_a_batch_in_one_call_does(backend: LoaderBackend) -> None:
    assert drawn(backend, InOneCall(), 2, batch_size=3) == [[0, -1, -2], [-3, -4, -5]]


@each_backend
def test_an_exception_of_a_sample_reaches_the_consumer_in_its_turn(
    backend: LoaderBackend, caplog: pytest.LogCaptureFixture
) -> None:
    with built(backend, Fails(), batch_size=2, threads=2) as found:
        iterator = iter(found.iterable)
        assert [next(iterator).tolist() for _ in range(3)] == [[0, 1], [2, 3], [4, 5]]
        with pytest.raises(KeyError, match="sample 7"):
            next(iterator)
    assert caplog.records == []


@each_backend
def test_a_truncated_image_is_named(backend: LoaderBackend, photos: Path, tmp_path: Path) -> None:
    from torchvision.datasets.folder import pil_loader

    whole, bad = sorted(photos.rglob("*.jpg"))[0], tmp_path / "bad.jpg"
    bad.write_bytes(whole.read_bytes()[:2000])
    images = ImageSamples([(str(whole), 0), (str(bad), 1)], pil_loader, imagenet_eval())
    with built(backend, images, batch_size=2) as found, pytest.raises(BadImageError, match=f"^{bad}: "):
        next(iter(found.iterable))


@each_backend
def test_it_is_known_which_threads_load_until_they_have_ended(backend: LoaderBackend) -> None:
    before = set(threading.enumerate())
    numbers = Numbers()
    with built(backend, numbers, batch_size=1, threads=3) as found:
        assert found.worker_pids() == []
        assert found.loading_threads() == []
        list(islice(found.iterable, 20))
        loading = found.loading_threads()
        assert len(loading) == 3
        assert numbers.threads <= set(loading)
        assert all(map(alive, loading))
    assert found.loading_threads() == []
    assert set(threading.enumerate()) <= before
    wait_for(lambda: not any(map(alive, loading)))


@each_backend
@pytest.mark.filterwarnings("error")
def test_it_closes_before_the_first_batch_after_some_and_twice(
    backend: LoaderBackend, caplog: pytest.LogCaptureFixture
) -> None:
    before = set(threading.enumerate())
    for taken in (None, 0, 5):
        found = backend.build(Numbers(), {"batch_size": 2, "threads": 2}, seed=0)
        iterator = None if taken is None else iter(found.iterable)
        assert len(list(islice(iterator or (), taken))) == (taken or 0)
        found.close(iterator)
        found.close()
        assert set(threading.enumerate()) <= before
    assert caplog.records == []


@each_backend
def test_close_waits_for_a_batch_that_is_being_made(backend: LoaderBackend) -> None:
    numbers, before = Numbers(), set(threading.enumerate())
    found = backend.build(numbers, {"batch_size": 1, "threads": 2}, seed=0)
    next(iterator := iter(found.iterable))
    wait_for(lambda: numbers.made >= found.ahead)
    numbers.allowed.clear()
    next(iterator)  # what it takes is made up for, and that has to wait
    assert numbers.waits.wait(LONGEST_S)
    threading.Timer(0.3, numbers.allowed.set).start()
    found.close()
    assert numbers.allowed.is_set()
    wait_for(lambda: set(threading.enumerate()) <= before)


@each_backend
@pytest.mark.parametrize("queued", [1, 4])
def test_no_more_batches_are_made_ahead_than_it_says(backend: LoaderBackend, queued: int) -> None:
    arguments = {"batch_size": 2, "threads": 2, "queued": queued}
    numbers = Numbers(100)
    with built(backend, numbers, **arguments) as found:
        iterator = iter(found.iterable)
        next(iterator)
        assert found.ahead == backend.prefetch(arguments).batches
        taken = 0 if isinstance(backend, Spdl) else 1  # whose place is filled when the next one is asked for
        wait_for(lambda: numbers.made >= 2 * (found.ahead + 1 - taken))
        time.sleep(0.3)
        assert numbers.made == 2 * (found.ahead + 1 - taken)


COMPUTES = """
import sys, threading
from importlib import import_module
import torch
module, name = sys.argv[1:]

class Counts:
    def __len__(self):
        return 100
    def __getitem__(self, index):
        return torch.get_num_threads()

batches = getattr(import_module(module), name)().build(Counts(), {"batch_size": 8, "threads": 2}, seed=0)
iterator = iter(batches.iterable)
inside = {int(count) for _ in range(5) for count in next(iterator)}
later = []
thread = threading.Thread(target=lambda: later.append(torch.get_num_threads()))
thread.start()
thread.join()
print(sorted(inside), torch.get_num_threads(), *later)
iterator.close()
batches.close()
"""


@each_backend
def test_a_loading_thread_computes_alone_and_other_threads_as_before(backend: LoaderBackend) -> None:
    """In a new process, where torch has set up no thread yet."""
    place = [type(backend).__module__, type(backend).__name__]
    done = subprocess.run([sys.executable, "-c", COMPUTES, *place], capture_output=True, text=True, check=False)
    number = torch.get_num_threads()
    assert (done.stdout.strip(), done.stderr) == (f"[1] {number} {number}", "")


@each_backend
@pytest.mark.parametrize(
    ("source", "said"),
    [
        (Stream(), "loader: {} needs a map-style dataset, got Stream"),
        ([torch.zeros(1)], "loader: {} needs a map-style dataset, got list"),
        (DataLoader(TensorDataset(torch.zeros(3))), "loader: {} needs a map-style dataset, got DataLoader"),
        (SeededSamples(Numbers(), 0), "measure.deterministic: threads of loader: {} share their random numbers"),
    ],
)
def test_what_threads_cannot_read_is_refused(backend: Any, source: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said.format(backend.name)):
        backend.build(source, {}, seed=0)


@each_backend
def test_an_empty_dataset_is_refused(backend: LoaderBackend) -> None:
    with pytest.raises(ValueError, match="the dataset is empty"):
        backend.build(Numbers(0), {}, seed=0)


@each_backend
def test_only_arguments_of_its_own_take_effect(backend: LoaderBackend) -> None:
    with built(backend, Numbers(), batch_size=2, nothing=1) as found:
        assert (found.configured, found.batch_size, found.samples_per_epoch) == ({"batch_size"}, 2, 12)


def test_without_a_process_group_nothing_is_divided() -> None:
    with built(Threads(), Numbers()) as found:
        assert not found.is_divided


@each_backend
@pytest.mark.parametrize("shuffle", [False, True])
def test_the_code_that_a_report_shows_gives_the_batches_of_a_dataloader(backend: LoaderBackend, shuffle: bool) -> None:
    before = set(threading.enumerate())
    arguments = {"batch_size": 4, "threads": 2, "queued": 2, "shuffle": shuffle, "drop_last": True}
    program: dict[str, Any] = {"dataset": Numbers(10)}
    exec("\n".join(backend.code(arguments, ["# a comment"])), program)
    epochs = [[batch.tolist() for batch in program["loader"]] for _ in range(2)]
    assert all([len(batch) for batch in epoch] == [4, 4] for epoch in epochs)
    if not shuffle:
        assert epochs == [[[0, 1, 2, 3], [4, 5, 6, 7]]] * 2
    if isinstance(backend, Spdl):
        program["loader"].stop()
    (program["pool"] if isinstance(backend, Spdl) else program["loader"].pool).shutdown()
    assert set(threading.enumerate()) <= before


def test_loading_threads_all_begin_at_once_and_can_be_started_again() -> None:
    loading = LoadingThreads(3, Numbers())
    loading.start()
    first = loading.numbers()
    loading.start()
    assert len(first) == 3
    assert loading.numbers() == first
    loading.end()


SUITE = """\
name: small
dataset: {kind: target, target: 'squares:Squares'}
loader: {batch_size: 4, shuffle: true, drop_last: true}
consumer: {kind: none}
measure: {rounds: 1, seconds: 0.2, verify: false}
"""
TARGET = """\
import torch

class Squares:
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.full((8,), index**2), index
"""


@each_backend
def test_a_run_measures_it_next_to_torch_on_a_dataset_of_the_user(backend: Any, tmp_path: Path) -> None:
    (tmp_path / "squares.py").write_text(TARGET)
    (tmp_path / "small.yaml").write_text(SUITE)
    axes = ("-P", f"loader=torch,{backend.name}", "-P", "threads=1,2")
    done = loaderbench("run", "small.yaml", *axes, "--out", "run", "-q", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    trials = [trial for trial in record["trials"] if trial["config"]["loader"] == backend.name]
    assert {trial["status"] for trial in trials} == {"completed"}
    assert sorted((trial["config"]["threads"], trial["workers"]["count"]) for trial in trials) == [(1, 1), (2, 2)]
    (parity,) = record["parity"]
    assert (parity["loader"], parity["against"], parity["refused"]) == (backend.name, "torch", "")


@each_backend
def test_the_page_shows_the_code_that_a_report_shows(backend: Any) -> None:
    config = {"loader": backend.name, "threads": 2, "queued": 3, "batch_size": 32, "shuffle": True, "drop_last": True}
    page = Path(__file__).parents[2] / "docs" / "reference" / "loaders" / f"{backend.name}.md"
    assert packed(f"```python\n{python_program(config, {}, None)}```") in packed(page.read_text(encoding="utf-8"))
