"""Each snippet is run on a folder of photos, and gives batches of the shape and the labels that it gave before."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from loader_batches import sharing_leftovers
from PIL import Image
from planted_causes import FOLDER
from simulated_device import SimulatedTensor, simulated
from threadpoolctl import threadpool_limits
from torch.utils.data import DataLoader

from loaderbench.datasets.image_folder import DECODER_NAMES, ON_DEVICE, TRANSFORM_NAMES
from loaderbench.datasets.photos import generate_photos
from loaderbench.loaders import LOADER_BACKENDS
from loaderbench.records import Config
from loaderbench.remedies.fewer_copies import REMEDY as FEWER_COPIES
from loaderbench.remedies.gpu_decode import REMEDY as GPU_DECODE
from loaderbench.remedies.program import python_program

LOADER = {"batch_size": 4, "drop_last": True}
NEEDED = {"dali": "nvidia.dali.fn", "nvimagecodec": "nvidia.nvimgcodec.nvimgcodec_impl"}

CHANGES: dict[str, Config] = {
    "as_it_is": {},
    "workers": {"num_workers": 1, "prefetch_factor": 4, "persistent_workers": True, "pin_memory": False},
    "out_of_order": {"num_workers": 2, "in_order": False},
    "one_thread": {"num_workers": 1, "worker_threads": 1},
    "every_cpu": {"num_workers": 1, "worker_affinity": "all"},
    "files_shared": {"num_workers": 1, "worker_sharing": "file_system"},
    "kept_memory": {"num_workers": 1, "keep_memory": True},
    "uint8": {"normalize": "device"},
    "copies": {"presize": 64},
    "cache": {"image_cache": "shared_memory", "num_workers": 1},
    "cache_of_ranks": {"image_cache": "shared_memory", "ranks": 2},
    **{f"decoder_{name}": {"decoder": name} for name in DECODER_NAMES},
    **{f"transform_{name}": {"transform": name} for name in TRANSFORM_NAMES if name != "to_tensor"},
    "all_together": {
        "num_workers": 2, "decoder": "pillow_lazy", "transform": "imagenet_train_scaled", "normalize": "device",
        "presize": 96, "worker_threads": 1,
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight photos of two classes."""
    folder = tmp_path_factory.mktemp("snippets") / "train"
    generate_photos(folder, images=8, classes=2)
    return folder


def first_batch(change: Config, root: Path | str) -> tuple[torch.Tensor, torch.Tensor]:
    names: dict[str, Any] = {"root": str(root), "__name__": "snippet"}
    exec(compile(python_program({**LOADER, **change}, LOADER, FOLDER), "snippet", "exec"), names)
    images, labels = next(iter(names["loader"]))
    if change.get("decoder") in ON_DEVICE:
        assert all(file.dtype == torch.uint8 and file.ndim == 1 for file in images)
        images = names["decoded"](images)
    if change.get("normalize") == "device":
        assert images.dtype == torch.uint8
        images = names["normalized"](images)
    return images, labels


@pytest.mark.parametrize("name", CHANGES)
def test_a_snippet_gives_batches_of_the_same_shape_and_labels(name: str, root: Path) -> None:
    if (decoder := CHANGES[name].get("decoder")) in NEEDED:
        pytest.importorskip(NEEDED[str(decoder)])
    images, labels = first_batch(CHANGES[name], root)
    assert images.shape == (4, 3, 224, 224)
    assert images.dtype == torch.float32
    first = {0, 1} if CHANGES[name].get("in_order") is False else {0}  # the batch of either class may be ready first
    assert labels.tolist() in [[label] * 4 for label in first]
    assert images.abs().max() < 4, "normalized"


@pytest.mark.parametrize("decoder", [name for name in DECODER_NAMES if name not in {*NEEDED, *ON_DEVICE}])
@pytest.mark.parametrize("change", [{}, {"normalize": "device"}, {"transform": "imagenet_train_v2"}])
def test_a_snippet_reads_gray_and_cmyk_images_and_other_formats_as_trials_do(
    decoder: str, change: Config, tmp_path: Path
) -> None:
    for number, (mode, kind) in enumerate([("L", "jpeg"), ("CMYK", "jpeg"), ("P", "png"), ("RGB", "jpeg")]):
        file = tmp_path / "class" / f"{number}.jpg"
        file.parent.mkdir(exist_ok=True)
        Image.new("RGB", (300, 260), (200, 90, 30)).convert(mode).save(file, kind)  # type: ignore[arg-type]
    images, _ = first_batch({"decoder": decoder, "shuffle": False, **change}, tmp_path)
    assert images.shape == (4, 3, 224, 224)
    assert torch.isfinite(images).all()


@pytest.mark.parametrize("loader", ["webdataset", "litdata", "streaming", "tf_records"])
def test_shards_have_files_of_all_classes_if_samples_are_drawn(loader: str) -> None:
    """Loaders that shuffle shards would otherwise make batches of one class."""
    drawn = python_program({"loader": loader, "threads": 1, **LOADER, "shuffle": True}, LOADER, FOLDER)
    ordered = python_program({"loader": loader, "threads": 1, **LOADER, "shuffle": False}, LOADER, FOLDER)
    (line,) = [line for line in drawn.splitlines() if line.startswith("files = ")]
    names: dict[str, Any] = {"Random": Random, "dataset": SimpleNamespace(samples=[*range(100)])}
    exec(line, names)
    assert names["files"] != [*range(100)]
    assert sorted(names["files"]) == [*range(100)]
    assert "\nfiles = dataset.samples\n" in ordered


def copies_of(root: Path, side: int) -> list[Path]:
    """The copies beside a folder, in the only one of their side."""
    (folder,) = root.parent.glob(f"{root.name}-{side}-*")
    return [*folder.rglob("*.jpg")]


def test_copies_are_made_beside_the_folder_and_once(root: Path) -> None:
    first_batch({"presize": 80}, root)
    copies = sorted(copies_of(root, 80))
    assert len(copies) == 8
    assert {min(Image.open(path).size) for path in copies} == {80}
    made_ns = [path.stat().st_mtime_ns for path in copies]
    first_batch({"presize": 80}, root)
    assert [path.stat().st_mtime_ns for path in copies] == made_ns


def test_copies_are_beside_the_folder_however_it_is_written(root: Path, tmp_path: Path) -> None:
    """Within it, the next start would take them for a class."""
    folder = tmp_path / "train"
    shutil.copytree(root, folder)
    for _ in range(2):
        first_batch({"presize": 80}, f"{folder}/")
    assert len(copies_of(folder, 80)) == len([*folder.rglob("*.jpg")]) == 8


def test_a_program_that_is_stopped_leaves_no_incomplete_copy(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(_: Image.Image, place: Path, *__: Any, **___: Any) -> None:
        Path(place).write_bytes(b"half")
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Image.Image, "save", stopped)
        with pytest.raises(KeyboardInterrupt):
            first_batch({"presize": 72}, root)
    assert not copies_of(root, 72)
    first_batch({"presize": 72}, root)
    assert {min(Image.open(path).size) for path in copies_of(root, 72)} == {72}


def test_a_program_imports_tensorflow_last() -> None:
    """Importing Triton after it, which torch does, ends the process."""
    change: Config = {"loader": "tf_data", "threads": 2, "batch_size": 4, "decoder": "pillow"}
    lines = python_program(change, {"shuffle": True}, FOLDER).splitlines()
    imports = [line for line in lines if line.startswith(("import ", "from "))]
    assert [line for line in imports if "import tensorflow" in line] == imports[-1:]


def test_the_program_for_decoding_on_a_gpu_decodes_as_it_stands(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the CPU, with simulated streams."""
    used_by: list[Any] = []
    monkeypatch.setattr(torch.Tensor, "record_stream", lambda _, stream: used_by.append(stream))
    samples = [(str(path), number) for number, path in enumerate(sorted(root.rglob("*.jpg")))]
    gray = root.parent / "gray.jpg"
    Image.open(samples[0][0]).convert("L").save(gray)
    collated, _, loop = GPU_DECODE.code.partition("\nstream = ")
    names: dict[str, Any] = {}
    exec(collated, names)
    names["loader"] = DataLoader([*samples, (str(gray), 8)], batch_size=3, collate_fn=names["collate"])  # type: ignore[arg-type]
    with simulated() as machine:
        exec("stream = " + loop.replace('"cuda"', '"cpu"'), names)
        assert used_by == [machine.current_stream()] * 9
    assert names["stream"] not in used_by
    assert [tuple(image.shape[:1]) for image in names["images"]] == [(3,)] * 3
    assert names["labels"].tolist() == [6, 7, 8]


def test_without_workers_what_they_set_up_is_set_up_in_the_program_itself(root: Path) -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        with threadpool_limits(2):
            first_batch({"num_workers": 0, "worker_threads": 1}, root)
            assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)


OWN_TRANSFORMS = """\
from torchvision.transforms import Compose, PILToTensor, Resize

def cut(image):
    return PILToTensor()(image.resize((8, 8)))

def make():
    return cut

class Cut:
    def __call__(self, image):
        return cut(image)

class Recipes:
    @staticmethod
    def train(*, size=8):
        return Compose([Resize((size, size)), PILToTensor()])
"""


@pytest.mark.parametrize("name", ["cut", "make", "Cut", "Recipes.train"])
def test_a_custom_transform_is_made_as_in_a_trial(
    name: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lb_own_transforms.py").write_text(OWN_TRANSFORMS)
    monkeypatch.syspath_prepend(tmp_path)
    names: dict[str, Any] = {"root": str(root), "__name__": "snippet"}
    exec(python_program({}, LOADER, {**FOLDER, "transform": f"lb_own_transforms:{name}"}), names)
    assert next(iter(names["loader"]))[0].shape == (4, 3, 8, 8)


def test_copies_are_made_of_images_alone(root: Path, tmp_path: Path) -> None:
    """Names of classes may have a dot, and other files may lie next to images."""
    folder = tmp_path / "train"
    shutil.copytree(root, folder)
    first, *_ = sorted(folder.iterdir())
    first.rename(folder / f"001.{first.name}")
    (folder / "labels.csv").write_text("a,b")
    first_batch({"presize": 80}, folder)
    assert len(copies_of(folder, 80)) == 8


def test_the_code_for_copies_hides_them_behind_the_steps() -> None:
    copy_s, step_s, steps, names = 3e-3, 10e-3, 20, dict[str, Any]()
    exec(FEWER_COPIES.code or "", names)
    with simulated() as machine:
        batches = [[SimulatedTensor(machine, copy_s, number=number) for _ in range(2)] for number in range(steps)]
        computes, seen = machine.current_stream(), list[int]()
        for images, labels in names["prefetched"](batches, torch.device("cuda")):
            seen += [images.number, labels.number]
            computes.launch(step_s)
        assert seen == [number for number in range(steps) for _ in range(2)]
        assert computes.free_at_s == pytest.approx(2 * copy_s + steps * step_s), "only the first copy is exposed"
        assert all(tensor.used_by == [computes] for batch in batches for tensor in batch)
        assert machine.clock.blocked_s == 0


def batch_of(config: Config, root: Path) -> tuple[torch.Tensor, torch.Tensor, dict[str, Any]]:
    """The first batch of a program, normalized, and the names that it defines."""
    names: dict[str, Any] = {"root": str(root), "__name__": "snippet"}
    program = python_program(
        config, LOADER, {**FOLDER, "format": LOADER_BACKENDS[str(config["loader"])].format or "files"}
    )
    exec(compile(program, "snippet", "exec"), names)
    images, labels = next(iter(names["loader"]))
    return names["normalized"](images) if config.get("normalize") == "device" else images, labels, names


@pytest.mark.parametrize("normalize", ["worker", "device"])
@pytest.mark.parametrize("transform", ["imagenet_train", "imagenet_eval"])
@pytest.mark.parametrize("loader", ["dali", "tf_data", "tf_queue", "tf_records"])
def test_a_loader_that_decodes_by_itself_does_what_was_measured(
    loader: str, transform: str, normalize: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not LOADER_BACKENDS[loader].is_installed():
        pytest.skip(f"{loader} is not installed")
    monkeypatch.chdir(tmp_path)  # for shards
    recipe: Config = {"transform": transform, "normalize": normalize, "shuffle": False}
    images, labels, _ = batch_of({"loader": loader, "threads": 1, **recipe}, root)
    assert (images.shape, images.dtype, labels.tolist()) == ((4, 3, 224, 224), torch.float32, [0] * 4)
    if transform == "imagenet_eval":
        expected, _, _ = batch_of({"loader": "torch", **recipe}, root)
        assert (images - expected).abs().mean() < 0.05


@sharing_leftovers
@pytest.mark.parametrize("decoder", ["torchvision", "pillow_draft", "nvimagecodec", "device"])
@pytest.mark.parametrize("loader", ["webdataset", "litdata", "streaming", "threads", "spdl", "grain"])
def test_a_program_of_another_loader_runs_whatever_decoded_in_trials(
    loader: str, decoder: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = LOADER_BACKENDS[loader]
    if not backend.is_installed() or (decoder == "nvimagecodec" and not backend.format):
        pytest.skip(f"{loader} or {decoder} is not installed")
    monkeypatch.chdir(tmp_path)
    own: Config = {"num_workers": 0} if backend.is_torchs else {"threads": 1}
    config: Config = {"loader": loader, "decoder": decoder, "transform": "imagenet_eval", "normalize": "worker", **own}
    images, _, _ = batch_of(config, root)
    assert (images.shape, images.dtype) == ((4, 3, 224, 224), torch.float32)
    says = f"# measured with decoder={decoder}; this program decodes with" in python_program(config, LOADER, FOLDER)
    assert says is (bool(backend.format) or decoder == "device")


@pytest.mark.parametrize(
    ("loader", "says"),
    [
        ("torch", "give it sampler=DistributedSampler(dataset), not shuffle"),
        ("webdataset", "they share the shards"),
        ("tf_records", "first give each its own shards"),
        ("dali", "first give each its own part of the dataset"),
    ],
)
def test_a_program_for_ranks_says_what_each_needs(loader: str, says: str) -> None:
    assert f"# in each of 2 ranks; {says}\n" in python_program({"loader": loader, "ranks": 2}, LOADER, FOLDER)


def test_a_transform_that_only_converts_normalizes_nothing(tmp_path: Path) -> None:
    (tmp_path / "train" / "a").mkdir(parents=True)
    for number in range(4):
        Image.new("RGB", (8, 8), (255, 0, 0)).save(tmp_path / "train" / "a" / f"{number}.png")
    images, _, _ = batch_of({"loader": "torch", "transform": "to_tensor"}, tmp_path / "train")
    assert images[:, 0].unique().tolist() == [1.0]


@pytest.mark.parametrize("change", [{"normalize": "device"}, {"decoder": "device"}])
def test_such_a_transform_gives_the_same_floats_if_the_device_converts(change: Config, tmp_path: Path) -> None:
    (tmp_path / "train" / "a").mkdir(parents=True)
    for number in range(4):
        Image.new("RGB", (8, 8), (255, 0, 60 * number)).save(tmp_path / "train" / "a" / f"{number}.jpg", quality=95)
    names: dict[str, Any] = {"root": str(tmp_path / "train"), "__name__": "snippet"}
    options = {**FOLDER, "transform": "to_tensor"}
    exec(python_program({**LOADER, **change}, LOADER, options), names)
    images, _ = next(iter(names["loader"]))
    floats = names["decoded" if "decoder" in change else "normalized"](images)
    assert floats.shape == (4, 3, 8, 8)
    assert floats[:, 0].mean().item() == pytest.approx(1.0, abs=0.02)
    assert floats[:, 1].mean().item() == pytest.approx(0.0, abs=0.02)
