"""What holds for the loader `streaming`: the mds copy, read by workers of torch's `DataLoader`."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from itertools import islice
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("streaming")
from command_line import loaderbench  # noqa: E402
from loader_batches import built, drawn, files_of, images  # noqa: E402
from packed_text import packed  # noqa: E402
from PIL import Image  # noqa: E402
from torch import multiprocessing  # noqa: E402
from torchvision.datasets import ImageFolder  # noqa: E402

from loaderbench.datasets.decoders import decode_pillow  # noqa: E402
from loaderbench.datasets.image_samples import TRANSFORMS, ImageSamples, Recipe, imagenet_eval  # noqa: E402
from loaderbench.errors import BadImageError  # noqa: E402
from loaderbench.formats import FORMATS, StoredCopy, written_copy  # noqa: E402
from loaderbench.formats.mds import Mds  # noqa: E402
from loaderbench.loaders.seeded import SeededSamples  # noqa: E402
from loaderbench.loaders.streaming_loader import Streaming  # noqa: E402
from loaderbench.loaders.torch_loader import TorchLoader  # noqa: E402
from loaderbench.remedies.program import python_program  # noqa: E402

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "loaders" / "streaming.md"


def copied(files: list[tuple[str, int]], cache: Path) -> StoredCopy:
    return written_copy(files, "mds", Mds(), cache_dir=cache)


def stored(files: list[tuple[str, int]], copy: StoredCopy, transform: str = "imagenet_eval") -> ImageSamples:
    return ImageSamples(files, decode_pillow, TRANSFORMS[transform](True), Recipe(transform, True), copy)


@pytest.fixture(scope="module")
def source(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> ImageSamples:
    """24 photos; a label is the number of its photo."""
    files = files_of(photos)
    return stored(files, copied(files, tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> ImageSamples:
    """40 small images in 20 parts of two: fast to decode, and left small."""
    folder, files = tmp_path_factory.mktemp("tiny"), []
    for number in range(40):
        Image.new("RGB", (8, 8), (number, 0, 0)).save(folder / f"{number:02d}.png")
        files.append((str(folder / f"{number:02d}.png"), number))
    return stored(files, copied(files, folder / "cache"), "to_tensor")


def labels(source: ImageSamples, batches: int, **arguments: Any) -> list[int]:
    found: list[int] = drawn(Streaming(), source, batches, **arguments)[1].tolist()
    return found


def left_behind() -> set[str]:
    """Shared memory, and what is in the folder for temporary files, by the names that the library gives them."""
    found = [*Path("/dev/shm").iterdir(), *Path(tempfile.gettempdir()).iterdir()]
    return {str(path) for path in found if path.name[:6].isdigit()}


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_images_are_exactly_those_of_torch_in_the_order_of_the_files(source: ImageSamples, workers: int) -> None:
    theirs, their_labels = drawn(TorchLoader(), images(list(source.samples)), 8, batch_size=5, num_workers=0)
    found, own_labels = drawn(Streaming(), source, 8, batch_size=5, num_workers=workers)
    assert (found.dtype, own_labels.dtype, found.shape) == (torch.float32, torch.int64, (40, 3, 224, 224))
    assert own_labels.tolist() == their_labels.tolist() == [*range(24), *range(16)]
    assert torch.equal(found, theirs)


@pytest.mark.parametrize("workers", [0, 1, 2, 4])
def test_shuffled_every_sample_comes_once_an_epoch_and_again_with_the_same_seed(
    tiny: ImageSamples, workers: int
) -> None:
    arguments = {"batch_size": 5, "shuffle": True, "num_workers": workers}
    found = labels(tiny, 24, **arguments)
    epochs = [found[begin : begin + 40] for begin in (0, 40, 80)]
    assert [sorted(epoch) for epoch in epochs] == [list(range(40))] * 3
    assert len({tuple(epoch) for epoch in epochs}) == 3
    assert found == labels(tiny, 24, **arguments)
    assert found != labels(tiny, 24, **arguments, seed=4)


@pytest.mark.parametrize("shuffle", [False, True])
def test_workers_with_unequal_parts_go_on_for_many_epochs(tiny: ImageSamples, shuffle: bool) -> None:
    found = labels(tiny, 200, batch_size=3, shuffle=shuffle, num_workers=3, prefetch_factor=1)
    assert len(found) == 600
    assert set(found) == set(range(40))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_truncated_image_is_named(photos: Path, tmp_path: Path, workers: int) -> None:
    whole, bad = sorted(photos.rglob("*.jpg"))[0], tmp_path / "bad.jpg"
    bad.write_bytes(whole.read_bytes()[:2000])
    files = [(str(whole), 0), (str(bad), 1)]
    found = stored(files, copied(files, tmp_path / "cache"))
    batches = Streaming().build(found, {"batch_size": 2, "num_workers": workers}, seed=0)
    iterator = iter(batches.iterable)
    with pytest.raises(BadImageError, match=f"(?m)^(?:.*BadImageError: )?{bad}: "):
        next(iterator)
    batches.close(iterator)


def test_a_part_that_is_gone_is_an_error_that_names_the_copy(tiny: ImageSamples, tmp_path: Path) -> None:
    files = list(tiny.samples)
    copy = copied(files, tmp_path)
    for file in copy.parts[3].iterdir():
        file.unlink()
    raises = pytest.raises(
        OSError, match=f"(?s){copy.folder}: cannot be read: .*delete {copy.folder} to write the copy"
    )
    with built(Streaming(), stored(files, copy, "to_tensor"), batch_size=10) as batches, raises:
        list(islice(batches.iterable, 5))


@pytest.mark.filterwarnings("error", "ignore:unclosed file:ResourceWarning")  # of its own index
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("taken", [None, 0, 5])
def test_it_closes_before_the_first_batch_after_some_and_twice_and_leaves_nothing(
    tiny: ImageSamples, workers: int, taken: int | None
) -> None:
    before, files_before = set(active_children()), left_behind()
    found = Streaming().build(tiny, {"batch_size": 2, "num_workers": workers, "shuffle": True}, seed=0)
    iterator = None if taken is None else iter(found.iterable)
    assert len(list(islice(() if iterator is None else iterator, taken))) == (taken or 0)
    assert len(set(active_children()) - before) == (0 if taken is None else workers)
    found.close(iterator)
    found.close(iterator)
    assert set(active_children()) <= before
    assert left_behind() <= files_before


def test_only_its_own_copy_is_read(photos: Path, tmp_path: Path, tiny: ImageSamples) -> None:
    files = files_of(photos)[:2]
    as_zip = written_copy(files, "zip", FORMATS["zip"], cache_dir=tmp_path)
    for source, said in (
        (images(files), "got ImageSamples$"),
        (stored(files, as_zip), "got a copy as zip$"),
        ([torch.zeros(1)], "got list$"),
        (SeededSamples(tiny, 0), "measure.deterministic"),
    ):
        with pytest.raises(TypeError, match=said):
            Streaming().build(source, {}, seed=0)


def test_all_its_arguments_take_effect(tiny: ImageSamples) -> None:
    arguments = {"batch_size": 2, "shuffle": True, "drop_last": True, "keep_memory": False}
    with built(Streaming(), tiny, **arguments) as found:
        assert (found.configured, found.batch_size, found.samples_per_epoch) == (arguments.keys(), 2, 40)


def of_rank(rank: int, folder: str, source: ImageSamples) -> None:
    from torch import distributed

    distributed.init_process_group("gloo", init_method=f"file://{folder}/group", rank=rank, world_size=2)
    said: list[Any] = []
    in_order: dict[str, Any] = {"batch_size": 2}
    shuffled = in_order | {"shuffle": True, "num_workers": 1, "multiprocessing_context": "spawn"}
    for arguments in (in_order, shuffled):  # a spawned worker has no process group
        with built(Streaming(), source, **arguments) as found:
            here = torch.cat([own for _, own in islice(found.iterable, 10)]).tolist()
            said += [here, found.is_divided, found.samples_per_epoch]
            distributed.barrier()
    Path(folder, str(rank)).write_text(json.dumps(said))
    distributed.barrier()  # the other rank may still be connecting to this one
    distributed.destroy_process_group()


def test_each_rank_loads_its_own_part(tiny: ImageSamples, tmp_path: Path) -> None:
    multiprocessing.spawn(of_rank, (str(tmp_path), tiny), nprocs=2)
    found = [json.loads((tmp_path / str(rank)).read_text()) for rank in range(2)]
    for own in found:
        assert [own[1:3], own[4:]] == [[True, 20], [True, 20]]
        assert own[3] != sorted(own[3])
    for part in (0, 3):
        assert Counter(found[0][part] + found[1][part]) == Counter(range(40))


SUITE = """\
name: small
dataset: {root: photos}
loader: {batch_size: 4, shuffle: true, drop_last: true}
consumer: {kind: none}
measure: {rounds: 1, seconds: 0.2, verify: false}
"""


@pytest.mark.skipif("mds" not in FORMATS, reason="not registered")
def test_a_run_measures_it_next_to_torch(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "photos").symlink_to(photos)
    (tmp_path / "small.yaml").write_text(SUITE)
    axes = ("-P", "loader=torch,streaming", "-P", "num_workers=2")
    cache, before = {"LOADERBENCH_CACHE": str(tmp_path / "cache")}, left_behind()
    done = loaderbench("run", "small.yaml", *axes, "--out", "run", "-q", cwd=tmp_path, **cache)
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    trials = [trial for trial in record["trials"] if trial["config"]["loader"] == "streaming"]
    assert {trial["status"] for trial in trials} == {"completed"}
    assert all({"read", "decode", "transform", "collate"} <= trial["stages"].keys() for trial in trials)
    (parity,) = record["parity"]
    assert (parity["loader"], parity["refused"]) == ("streaming", "")
    assert [copy["format"] for copy in record["copies"]] == ["mds"]
    assert left_behind() <= before


def test_the_code_that_a_report_shows_gives_the_images_of_the_dataset(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    dataset, before = ImageFolder(str(photos), imagenet_eval()), left_behind()
    for shuffle in (False, True):
        program: dict[str, Any] = {"dataset": dataset}
        arguments = {"batch_size": 4, "num_workers": 0, "shuffle": shuffle, "drop_last": True}
        exec("\n".join(Streaming().code(arguments, ["# a comment"])), program)
        found = [*program["loader"]]
        own_labels = torch.cat([own for _, own in found])
        assert sorted(own_labels.tolist()) == sorted(dataset.targets)
        if not shuffle:
            assert torch.equal(torch.cat([image for image, _ in found]), torch.stack([image for image, _ in dataset]))
    for path in left_behind() - before:
        if "filelock" in path:
            Path(path).unlink()  # which the library leaves


def test_the_page_shows_the_code_that_a_report_shows() -> None:
    config = {"loader": "streaming", "num_workers": 2, "batch_size": 32, "shuffle": True, "drop_last": True}
    assert packed(f"```python\n{python_program(config, {}, None)}```") in packed(PAGE.read_text(encoding="utf-8"))
