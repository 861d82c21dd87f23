"""`tf_records` reads shards of TFRecords as `tf_data` reads files: the same pixels, in order or shuffled."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("google_crc32c")
from loader_batches import built, drawn, files_of, images, wait_for  # noqa: E402
from packed_text import packed  # noqa: E402
from torchvision.datasets.folder import pil_loader  # noqa: E402

from loaderbench.datasets.image_samples import TRANSFORMS, ImageSamples  # noqa: E402
from loaderbench.errors import BadImageError  # noqa: E402
from loaderbench.formats import written_copy  # noqa: E402
from loaderbench.formats.tar import Tar  # noqa: E402
from loaderbench.formats.tfrecord import TfRecord  # noqa: E402
from loaderbench.imagenet import STD  # noqa: E402
from loaderbench.loaders import TorchLoader  # noqa: E402
from loaderbench.loaders.tf_data import TfData  # noqa: E402
from loaderbench.loaders.tf_records import TfRecords  # noqa: E402

if not TfRecords().is_installed():  # importing it here would end the process as soon as a test imports Triton
    pytest.skip("TensorFlow is not installed", allow_module_level=True)

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "loaders" / "tf_records.md"
Store = Callable[..., ImageSamples]


@pytest.fixture
def store(photos: Path, tmp_path: Path) -> Store:
    """A dataset of photos with their copy."""

    def of(files: list[tuple[str, int]] | None = None, *how: Any) -> ImageSamples:
        source = images(files or files_of(photos), *how)
        source.copy = written_copy(source.samples, "tfrecord", TfRecord(), cache_dir=tmp_path)
        return source

    return of


def alive(thread: int) -> bool:
    return Path(f"/proc/self/task/{thread}").exists()


def cpu_ns(thread: int) -> int:
    return int(Path(f"/proc/self/task/{thread}/schedstat").read_text().split()[0])


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("count", [10, 24])
def test_batches_are_those_of_torch_to_a_step_of_255_in_the_order_of_the_files(
    count: int, threads: int, store: Store, photos: Path
) -> None:
    source = store(files_of(photos)[:count])
    theirs, their_labels = drawn(TorchLoader(), source, 7, batch_size=4, num_workers=0)
    found, labels = drawn(TfRecords(), source, 7, batch_size=4, threads=threads)
    assert (found.dtype, labels.dtype, found.shape) == (torch.float32, torch.int64, (28, 3, 224, 224))
    assert labels.tolist() == their_labels.tolist() == [number % count for number in range(28)]
    apart = (found - theirs).abs() * 255 * torch.tensor(STD).view(3, 1, 1)
    assert float(apart.max()) < 1.01
    assert float(apart.mean()) < 0.35


@pytest.mark.parametrize("how", [("imagenet_eval", False), ("imagenet_train", True), ("imagenet_train_v2", False)])
def test_pixels_and_crops_are_those_of_tf_data(how: tuple[str, bool], store: Store) -> None:
    source = store(None, *how)
    theirs, their_labels = drawn(TfData(), source, 8, batch_size=4, threads=2)
    found, labels = drawn(TfRecords(), source, 8, batch_size=4, threads=2)
    assert torch.equal(found, theirs)
    assert torch.equal(labels, their_labels)


@pytest.mark.parametrize("buffer", [1, 5, None])
def test_shuffled_every_sample_comes_once_an_epoch_in_another_order(buffer: int | None, store: Store) -> None:
    _, labels = drawn(TfRecords(), store(), 12, batch_size=6, shuffle=True, shuffle_buffer=buffer, threads=2)
    epochs = labels.view(3, 24).tolist()
    assert [sorted(epoch) for epoch in epochs] == [list(range(24))] * 3
    assert len({tuple(epoch) for epoch in [*epochs, list(range(24))]}) == 4


def test_a_seed_repeats_order_and_crops_with_any_threads(store: Store) -> None:
    source = store(None, "imagenet_train")
    first, again, other = (
        drawn(TfRecords(), source, 6, batch_size=6, shuffle=True, threads=threads, shuffle_buffer=9, seed=seed)
        for threads, seed in ((1, 1), (3, 1), (1, 2))
    )
    assert torch.equal(first[0], again[0])
    assert torch.equal(first[1], again[1])
    assert not torch.equal(first[1], other[1])


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
def test_the_threads_that_load_are_known_and_have_ended_after_close(threads: int, shuffle: bool, store: Store) -> None:
    before = set(threading.enumerate())
    with built(TfRecords(), store(), batch_size=8, threads=threads, shuffle=shuffle) as found:
        assert (found.worker_pids(), found.loading_threads()) == ([], [])
        iterator = iter(found.iterable)
        next(iterator)
        loading = found.loading_threads()
        assert len(loading) == threads
        began_ns = {int(path.name): cpu_ns(int(path.name)) for path in Path("/proc/self/task").iterdir()}
        list(islice(iterator, 40))
        spent_ns = {thread: cpu_ns(thread) - ns for thread, ns in began_ns.items() if alive(thread)}
        others_ns = sum(ns for thread, ns in spent_ns.items() if thread not in loading)
        assert sum(spent_ns[thread] for thread in loading) > 4 * others_ns
        assert min(spent_ns[thread] for thread in loading) > 0
    assert found.loading_threads() == []
    assert set(threading.enumerate()) <= before
    wait_for(lambda: not any(map(alive, loading)))


@pytest.mark.filterwarnings("error")
def test_it_closes_before_the_first_batch_after_some_and_twice_and_says_nothing(
    store: Store, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    before, source = set(threading.enumerate()), store()
    for taken in (None, 0, 5):
        found = TfRecords().build(source, {"batch_size": 2, "threads": 2, "shuffle": True}, seed=0)
        iterator = None if taken is None else iter(found.iterable)
        assert len(list(islice(iterator or (), taken))) == (taken or 0)
        found.close(iterator)
        found.close()
        assert set(threading.enumerate()) <= before
        assert list(iterator or ()) == []
    assert (caplog.records, capfd.readouterr()) == ([], ("", ""))


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("content", [b"no image", None], ids=["no image", "truncated"])
def test_an_image_that_cannot_be_decoded_is_named_and_all_threads_end(
    content: bytes | None, shuffle: bool, store: Store, photos: Path, tmp_path: Path
) -> None:
    before, files, bad = set(threading.enumerate()), files_of(photos), tmp_path / "bad image.jpg"
    whole = Path(files[0][0]).read_bytes()
    bad.write_bytes(content or whole[: len(whole) // 2])
    files[13] = (str(bad), 13)
    arguments = {"batch_size": 4, "threads": 2, "queued": 1, "shuffle": shuffle, "shuffle_buffer": 5}
    with built(TfRecords(), store(files), **arguments) as found:
        iterator, loading = iter(found.iterable), set[int]()
        watched = (loading.update(found.loading_threads()) for _ in iterator)
        with pytest.raises(BadImageError) as raised:
            list(watched)
        assert str(raised.value).startswith(f"{bad}: InvalidArgumentError: ")
        assert set(threading.enumerate()) <= before
        wait_for(lambda: not any(map(alive, loading)))
        assert list(iterator) == []


def truncate(shard: Path) -> None:
    shard.write_bytes(shard.read_bytes()[:-5])


def flip(shard: Path) -> None:
    data = bytearray(shard.read_bytes())
    data[-1000] ^= 1
    shard.write_bytes(data)


@pytest.mark.parametrize("damage", [truncate, flip, Path.unlink])
def test_a_damaged_shard_is_named_in_one_line(damage: Callable[[Path], None], store: Store) -> None:
    before, source = set(threading.enumerate()), store()
    assert source.copy is not None
    shard = source.copy.parts[9] / "images.tfrecord"
    damage(shard)
    with built(TfRecords(), source, batch_size=4, threads=2, queued=1) as found:
        with pytest.raises(OSError, match=f"^{shard}: [^\n\\[]+; delete the copy, and a run writes it again$"):
            list(found.iterable)
        assert set(threading.enumerate()) <= before


def test_what_it_cannot_load_is_refused(store: Store, photos: Path, tmp_path: Path) -> None:
    without, tar = images(files_of(photos)), images(files_of(photos))
    tar.copy = written_copy(tar.samples, "tar", Tar(), cache_dir=tmp_path)
    other = ImageSamples(without.samples, pil_loader, TRANSFORMS["imagenet_eval"](), None, store().copy)
    for source, said in (
        (without, "reads the tfrecord copy of an image folder, which a run writes; got ImageSamples"),
        (tar, "got a copy as tar"),
        (other, "needs an image folder with a named transform"),
        (store(None, "to_tensor"), "does not support transform: to_tensor"),
    ):
        with pytest.raises(TypeError, match=f"^loader tf_records .*{said}"):
            TfRecords().build(source, {}, seed=0)


def test_values_of_the_buffer_are_one_configuration_without_shuffle() -> None:
    config = {"threads": 2, "shuffle_buffer": 50}
    assert TfRecords().normalized(config, {"shuffle": True}) == config
    assert TfRecords().normalized(config, {}) == {"threads": 2, "shuffle_buffer": None}


@pytest.mark.parametrize("shuffle", [False, True])
def test_the_code_that_a_report_shows_gives_epochs_of_batches(
    shuffle: bool, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    source = images(files_of(photos)[:22], "imagenet_train")
    theirs, _ = drawn(TorchLoader(), source, 11, batch_size=22, num_workers=0)
    for drop_last, sizes in {True: [8, 8], False: [8, 8, 6]}.items():
        program: dict[str, Any] = {"dataset": source}
        arguments = {"batch_size": 8, "threads": 1, "queued": 2, "shuffle": shuffle, "drop_last": drop_last}
        exec("\n".join(TfRecords().code(arguments, ["# a comment"])), program)
        for _ in range(2):
            pixels, labels = zip(*program["loader"], strict=True)
            assert [len(part) for part in pixels] == sizes
            assert (pixels[0].shape[1:], pixels[0].dtype, labels[0].dtype) == (
                (3, 224, 224),
                torch.float32,
                torch.int64,
            )
            numbers = torch.cat(labels).tolist()
            assert (numbers == list(range(len(numbers)))) is not shuffle
            assert len(set(numbers)) == len(numbers)
            assert float(torch.cat(pixels).mean()) == pytest.approx(float(theirs.mean()), abs=0.4)
            assert float(torch.cat(pixels).std()) == pytest.approx(float(theirs.std()), rel=0.3)


def test_the_page_shows_this_code() -> None:
    code = TfRecords().code({"batch_size": 32, "threads": 2, "shuffle": True, "drop_last": True}, [])
    assert packed("```python\n" + "\n".join(code[1:]) + "\n```") in packed(PAGE.read_text(encoding="utf-8"))
    head, box = code[0].split("\n\n")[0], code[0].partition("def random_box")[2]
    assert all(packed(part) in packed(PAGE.with_name("tf_data.md").read_text(encoding="utf-8")) for part in (head, box))
