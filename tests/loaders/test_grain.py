"""What holds for the loader `grain`, in threads and in processes."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from itertools import chain, islice
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("grain")
from loader_batches import built, drawn, files_of, images, wait_for  # noqa: E402
from packed_text import packed  # noqa: E402
from torch.utils.data import Dataset  # noqa: E402

from loaderbench.errors import BadImageError  # noqa: E402
from loaderbench.loaders.grain_loader import Grain  # noqa: E402
from loaderbench.loaders.seeded import SeededSamples  # noqa: E402
from loaderbench.loaders.torch_loader import TorchLoader  # noqa: E402
from loaderbench.remedies.program import python_program  # noqa: E402

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "loaders" / "grain.md"
each_number_of_threads = pytest.mark.parametrize("threads", [1, 3])


class Numbers(Dataset[Any]):
    """Its own number is a sample; counts how many were made."""

    def __init__(self, length: int = 12) -> None:
        self.length, self.made = length, 0

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        self.made += 1
        return torch.tensor(index)


class NoiseAndNumber(Numbers):
    def __getitem__(self, index: int) -> Any:
        return torch.rand((), dtype=torch.float64), index


class Waits(Numbers):
    """Waits in each sample until it may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.allowed, self.waits = threading.Event(), threading.Event()
        self.allowed.set()

    def __getitem__(self, index: int) -> Any:
        if not self.allowed.is_set():
            self.waits.set()
        self.allowed.wait(30)
        return super().__getitem__(index)


def numbers(batches: int, length: int = 12, seed: int = 3, **arguments: Any) -> list[list[int]]:
    with built(Grain(), Numbers(length), seed=seed, **arguments) as found:
        return [batch.tolist() for batch in islice(found.iterable, batches)]


@each_number_of_threads
def test_images_are_exactly_those_of_torch_in_the_order_of_the_files(threads: int, photos: Path) -> None:
    files = files_of(photos)[:10]
    theirs, their_labels = drawn(TorchLoader(), images(files), 6, batch_size=4, num_workers=0)
    found, labels = drawn(Grain(), images(files), 6, batch_size=4, threads=threads)
    assert (found.dtype, labels.dtype, found.shape) == (torch.float32, torch.int64, (24, 3, 224, 224))
    assert labels.tolist() == their_labels.tolist() == [*range(10), *range(10), *range(4)]
    assert torch.equal(found, theirs)


@each_number_of_threads
def test_shuffled_every_sample_comes_once_an_epoch_and_again_with_the_same_seed(threads: int) -> None:
    found = numbers(9, batch_size=4, shuffle=True, threads=threads)
    epochs = [[*chain(*found[first : first + 3])] for first in (0, 3, 6)]
    assert [sorted(epoch) for epoch in epochs] == [list(range(12))] * 3
    assert len({tuple(epoch) for epoch in epochs}) == 3
    assert found == numbers(9, batch_size=4, shuffle=True)


def test_the_next_seed_does_not_begin_with_the_second_epoch_of_this_one() -> None:
    second = numbers(6, batch_size=4, shuffle=True, seed=3)[3:]
    assert numbers(3, batch_size=4, shuffle=True, seed=4) != second


def test_no_two_threads_draw_the_same_random_numbers() -> None:
    with built(Grain(), NoiseAndNumber(), batch_size=4, threads=3) as found:
        values = torch.cat([noise for noise, _ in islice(found.iterable, 60)])
    assert len(values.unique()) == 240
    assert abs(float(values.mean()) - 0.5) < 0.1


def test_processes_give_the_batches_of_threads_with_random_numbers_of_their_own(
    caplog: pytest.LogCaptureFixture,
) -> None:
    before = set(active_children())
    arguments = {"batch_size": 4, "shuffle": True, "threads": 2, "num_workers": 2}
    found = Grain().build(NoiseAndNumber(), arguments, seed=3)
    iterator = iter(found.iterable)
    batches = list(islice(iterator, 30))
    started = {child.pid for child in set(active_children()) - before}
    assert len(started) == 2
    assert (started <= set(found.worker_pids()), found.loading_threads()) == (True, [])
    assert [own.tolist() for _, own in batches] == numbers(30, batch_size=4, shuffle=True)
    assert len(torch.cat([noise for noise, _ in batches]).unique()) == 120
    found.close(iterator)
    found.close()
    assert set(active_children()) <= before
    assert caplog.records == []


@pytest.mark.parametrize("concurrency", [{"threads": 2}, {"num_workers": 1}], ids=str)
def test_a_truncated_image_is_named(concurrency: dict[str, int], photos: Path, tmp_path: Path) -> None:
    whole, bad = sorted(photos.rglob("*.jpg"))[0], tmp_path / "bad.jpg"
    bad.write_bytes(whole.read_bytes()[:2000])
    source = images([(str(whole), 0), (str(bad), 1)])
    raises = pytest.raises(BadImageError, match=f"^{bad}: ")
    with built(Grain(), source, batch_size=2, **concurrency) as found, raises:
        next(iter(found.iterable))


def test_it_is_known_which_threads_load_until_they_have_ended() -> None:
    before = set(threading.enumerate())
    with built(Grain(), Numbers(), batch_size=1, threads=3) as found:
        assert (found.worker_pids(), found.loading_threads()) == ([], [])
        list(islice(found.iterable, 20))
        names = {thread.native_id for thread in set(threading.enumerate()) - before}
        assert len(names) == 3
        assert set(found.loading_threads()) == names
    assert found.loading_threads() == []
    assert set(threading.enumerate()) <= before


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("taken", [None, 0, 5])
def test_it_closes_before_the_first_batch_after_some_and_twice(
    taken: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    found = Grain().build(Numbers(), {"batch_size": 2, "threads": 2}, seed=0)
    iterator = None if taken is None else iter(found.iterable)
    assert len(list(islice(() if iterator is None else iterator, taken))) == (taken or 0)
    found.close(iterator)
    found.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("grain-prefetch")]
    assert caplog.records == []


def test_close_waits_for_a_batch_that_is_being_made() -> None:
    waits, before = Waits(), set(threading.enumerate())
    found = Grain().build(waits, {"batch_size": 1, "threads": 2}, seed=0)
    iterator = iter(found.iterable)
    next(iterator)
    wait_for(lambda: waits.made >= 4)
    waits.allowed.clear()
    next(iterator)
    assert waits.waits.wait(30)
    threading.Timer(0.3, waits.allowed.set).start()
    found.close(iterator)
    assert waits.allowed.is_set()
    wait_for(lambda: set(threading.enumerate()) <= before)


@pytest.mark.parametrize("queued", [1, 4])
def test_no_more_batches_are_made_ahead_than_it_says(queued: int) -> None:
    arguments = {"batch_size": 2, "threads": 2, "queued": queued}
    source = Numbers(100)
    with built(Grain(), source, **arguments) as found:
        next(iter(found.iterable))
        assert found.ahead == Grain().prefetch(arguments).batches == queued
        wait_for(lambda: source.made >= 2 * (queued + 1))
        time.sleep(0.3)
        assert source.made == 2 * (queued + 1)


COMPUTES = """
import threading
import torch
from loaderbench.loaders.grain_loader import Grain

class Counts:
    def __len__(self):
        return 100
    def __getitem__(self, index):
        return torch.get_num_threads()

batches = Grain().build(Counts(), {"batch_size": 8, "threads": 2}, seed=0)
iterator = iter(batches.iterable)
inside = {int(count) for _ in range(5) for count in next(iterator)}
later = []
thread = threading.Thread(target=lambda: later.append(torch.get_num_threads()))
thread.start()
thread.join()
print(sorted(inside), torch.get_num_threads(), *later)
batches.close(iterator)
"""


def test_a_loading_thread_computes_alone_and_other_threads_as_before() -> None:
    """In a new process, where torch has set up no thread yet."""
    done = subprocess.run([sys.executable, "-c", COMPUTES], capture_output=True, text=True, check=False)
    number = torch.get_num_threads()
    said = [line for line in done.stderr.splitlines() if "No module named 'jax'" not in line]
    assert (done.stdout.strip(), said) == (f"[1] {number} {number}", [])


@pytest.mark.parametrize(
    ("source", "raised", "said"),
    [
        ([torch.zeros(1)], TypeError, "loader: grain needs a map-style dataset, got list"),
        (SeededSamples(Numbers(), 0), TypeError, "measure.deterministic: threads of loader: grain share"),
        (Numbers(0), ValueError, "the dataset is empty"),
    ],
)
def test_what_it_cannot_read_is_refused(source: Any, raised: type[Exception], said: str) -> None:
    with pytest.raises(raised, match=said):
        Grain().build(source, {}, seed=0)


@pytest.mark.parametrize("shuffle", [False, True])
def test_the_code_that_a_report_shows_gives_the_batches_of_a_dataloader(shuffle: bool) -> None:
    arguments = {"batch_size": 4, "threads": 2, "queued": 2, "shuffle": shuffle, "drop_last": True}
    program: dict[str, Any] = {"dataset": Numbers(10)}
    exec("\n".join(Grain().code(arguments, ["# a comment"])), program)
    epochs = [[batch.tolist() for batch in program["loader"]] for _ in range(2)]
    assert [[len(batch) for batch in epoch] for epoch in epochs] == [[4, 4]] * 2
    assert (epochs == [[[0, 1, 2, 3], [4, 5, 6, 7]]] * 2) is not shuffle
    assert (epochs[0] == epochs[1]) is not shuffle
    program["loader"].batches.close()


def test_the_code_for_processes_gives_each_its_own_random_numbers() -> None:
    program: dict[str, Any] = {"dataset": NoiseAndNumber(12)}
    exec("\n".join(Grain().code({"batch_size": 4, "threads": 1, "num_workers": 2}, [])), program)
    found = [batch for _ in range(2) for batch in program["loader"]]
    program["loader"].batches.close()
    assert torch.cat([numbers for _, numbers in found]).tolist() == [*range(12)] * 2
    assert len(torch.cat([values for values, _ in found]).unique()) == 24


class Named(Dataset[Any]):
    """Samples as in many datasets of text and images."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"number": index, "name": str(index), "image": torch.full((2,), index)}


def test_the_code_for_processes_keeps_the_structure_of_samples() -> None:
    program: dict[str, Any] = {"dataset": Named()}
    exec("\n".join(Grain().code({"batch_size": 4, "threads": 1, "num_workers": 1}, [])), program)
    first = next(iter(program["loader"]))
    program["loader"].batches.close()
    assert first["name"] == ["0", "1", "2", "3"]
    assert (first["number"].tolist(), first["image"].shape) == ([0, 1, 2, 3], (4, 2))
    assert torch.is_tensor(first["image"])


def test_the_page_shows_the_code_that_a_report_shows() -> None:
    config = {"loader": "grain", "threads": 2, "queued": 3, "batch_size": 32, "shuffle": True, "drop_last": True}
    assert packed(f"```python\n{python_program(config, {}, None)}```") in packed(PAGE.read_text(encoding="utf-8"))
