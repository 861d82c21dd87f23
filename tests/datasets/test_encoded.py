"""`decoder: device` and `dali`: workers read files, and the device decodes them to what the CPU gives; here the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
import torchvision.io
from dali_pipelines import no_pipeline_is_left  # noqa: F401 - used by every test
from PIL import Image
from simulated_device import SimulatedTensor, patch_machine
from torch.utils.data import DataLoader, default_collate

from loaderbench.datasets import DatasetOrder, encoded
from loaderbench.datasets.dali import DaliJpegs
from loaderbench.datasets.encoded import DecodedOnDevice, EncodedSamples, decode_jpegs
from loaderbench.datasets.image_folder import DEVICE_TRANSFORMS, ON_DEVICE, ImageFolder
from loaderbench.datasets.image_samples import TRANSFORMS
from loaderbench.errors import BadImageError
from loaderbench.recorder.samples import count_samples

Photos = tuple[tuple[str, int], ...]


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Photos:
    """Of different sizes: three JPEGs, one of them gray and one CMYK, and a PNG."""
    folder, made = tmp_path_factory.mktemp("encoded"), []
    for number, (mode, suffix) in enumerate([("RGB", "jpg"), ("L", "jpg"), ("CMYK", "jpg"), ("RGB", "png")]):
        across = np.linspace(0, 5, 300 + 20 * number)
        waves = np.stack([np.sin(across[None] * (c + 1)) * np.cos(across[:260, None]) for c in range(3)], axis=-1)
        path = folder / f"{number}.{suffix}"
        Image.fromarray(((waves + 1) * 127).astype(np.uint8)).convert(mode).save(path)
        made.append((str(path), number))
    return tuple(made)


def batch_of(photos: Photos, workers: int = 0) -> Any:
    return next(iter(DataLoader(EncodedSamples(photos), batch_size=len(photos), num_workers=workers)))


@pytest.mark.parametrize("workers", [0, 1])
def test_a_loader_of_torch_packs_the_files_of_a_batch(photos: Photos, workers: int) -> None:
    batch = batch_of(photos, workers)
    files, labels = batch[0].files(), batch[1]
    assert [file.numpy().tobytes() for file in files] == [Path(path).read_bytes() for path, _ in photos]
    assert labels.tolist() == [0, 1, 2, 3]
    assert count_samples(batch, 4) == 4


@pytest.fixture(params=ON_DEVICE)
def decoder(request: pytest.FixtureRequest) -> str:
    """Each that leaves decoding to the device."""
    if request.param == "dali":
        pytest.importorskip("nvidia.dali.fn")
    return str(request.param)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("name", [name for name in DEVICE_TRANSFORMS if name != "to_tensor"])
def test_the_device_gives_what_workers_give(photos: Photos, name: str, normalize: bool, decoder: str) -> None:
    order = DatasetOrder(photos[:2], {"transform": name, "decoder": "torchvision"}, Path())
    folder = ImageFolder(normalize="worker" if normalize else "device")
    workers = folder.build(order).source
    rest = DecodedOnDevice("cpu", TRANSFORMS[name](False), normalize=normalize, decoder=decoder)
    found, _ = rest(_drawn_alike(photos[:2]))
    torch.manual_seed(3)
    expected = torch.stack([workers[0][0], workers[1][0]])
    assert found.dtype == expected.dtype
    assert torch.allclose(found.float(), expected.float(), atol=1e-4)


def _drawn_alike(photos: Photos) -> Any:
    batch = batch_of(photos)
    torch.manual_seed(3)
    return batch


def test_what_only_the_cpu_can_decode_is_decoded_there_and_counted(
    photos: Photos, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a GPU refuses a whole batch for one CMYK image."""
    cmyk = Path(photos[2][0]).read_bytes()

    def decode(files: list[torch.Tensor], device: torch.device) -> list[torch.Tensor]:
        if any(file.numpy().tobytes() == cmyk for file in files):
            raise RuntimeError("nvjpegDecode failed: 2")
        return decode_jpegs(files, device)

    monkeypatch.setattr(encoded, "decode_jpegs", decode)
    rest = DecodedOnDevice("cpu", TRANSFORMS["imagenet_eval"](False), normalize=False)
    images, labels = rest(batch_of(photos))
    assert (images.shape, labels.tolist()) == ((4, 3, 224, 224), [0, 1, 2, 3])
    assert rest.note.startswith("2 of 4 images were decoded on the CPU")


def test_a_file_that_no_decoder_takes_is_an_error_and_the_next_batch_is_decoded(photos: Photos, decoder: str) -> None:
    """DALI says that its pipeline is invalid after an error."""
    rest = DecodedOnDevice("cpu", TRANSFORMS["imagenet_eval"](False), normalize=False, decoder=decoder)
    files = batch_of(photos[:2])[0].files()
    with pytest.raises(OSError, match="truncated"):
        rest.decoded([files[0], files[1][:500]])
    assert [image.shape for image in rest.decoded([*files, files[0]])] == [(3, 260, 300), (3, 260, 320), (3, 260, 300)]


def test_dali_leaves_what_is_no_jpeg_to_the_cpu_and_turns_no_image(photos: Photos, tmp_path: Path) -> None:
    """As Pillow gives pixels in the order of the file, whatever EXIF says."""
    pytest.importorskip("nvidia.dali.fn")
    turned, exif = tmp_path / "turned.jpg", Image.Exif()
    exif[0x0112] = 6  # to be turned by 90 degrees
    Image.open(photos[0][0]).save(turned, exif=exif)
    rest = DecodedOnDevice("cpu", TRANSFORMS["imagenet_eval"](False), normalize=False, decoder="dali")
    found = rest.decoded(batch_of((*photos, (str(turned), 4)))[0].files())
    for image, path in zip(found, [*(path for path, _ in photos), turned], strict=True):
        expected = torch.from_numpy(np.array(Image.open(path).convert("RGB"))).permute(2, 0, 1)
        assert torch.equal(image, expected), path
    assert rest.note.startswith("1 of 5 images were decoded on the CPU")


def test_dali_is_for_nvidia_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match="decoder: dali needs an NVIDIA GPU, and this device is mps"):
        DaliJpegs(torch.device("mps"))
    monkeypatch.setattr(torch.version, "hip", "6.4")
    with pytest.raises(RuntimeError, match="decoder: dali needs an NVIDIA GPU, and this device is ROCm"):
        DaliJpegs(torch.device("cuda", 0))


def test_a_device_without_a_decoder_is_an_error_and_no_slow_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise RuntimeError("decode_jpegs_cuda: torchvision not compiled with nvJPEG support")

    monkeypatch.setattr(torchvision.io, "decode_jpeg", refuse)
    with pytest.raises(RuntimeError, match="nvJPEG"):
        DecodedOnDevice("cpu", TRANSFORMS["imagenet_eval"](False), normalize=False)
    with pytest.raises(RuntimeError, match="decoder: device needs CUDA, and this device is meta"):
        decode_jpegs([], torch.device("meta"))


def test_an_image_is_not_overwritten_while_queued_work_may_read_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """torchvision decodes on a stream of its own, and memory of the current stream is free for it too early."""
    machine = patch_machine(monkeypatch)
    decoded_on = []

    def decode(files: Sequence[torch.Tensor], _: torch.device) -> list[SimulatedTensor]:
        stream = machine.current_stream()
        stream.launch(0.01)
        decoded_on.append(stream)
        return [SimulatedTensor(machine, 0.0) for _ in files]

    monkeypatch.setattr(encoded, "_by_library", decode)
    encoded._decoding_stream.cache_clear()
    current = machine.current_stream()
    files = [torch.zeros(3, dtype=torch.uint8)] * 2
    images = [cast(SimulatedTensor, image) for _ in range(2) for image in decode_jpegs(files, torch.device("cuda", 0))]
    encoded._decoding_stream.cache_clear()
    assert len(set(map(id, decoded_on))) == 1
    assert decoded_on[0] is not current
    assert [image.used_by for image in images] == [[current]] * 4, "the allocator waits for the stream that reads it"
    assert current.free_at_s == pytest.approx(0.02), "nothing reads an image before it is decoded"


@pytest.mark.parametrize("refused", [TypeError("no list"), RuntimeError("Expected a value of type 'Tensor' for x")])
def test_a_torchvision_that_takes_one_image_a_call_is_called_for_each(
    refused: Exception, photos: Photos, monkeypatch: pytest.MonkeyPatch
) -> None:
    decode = torchvision.io.decode_jpeg

    def of_old(image: torch.Tensor, **options: Any) -> Any:
        if not isinstance(image, torch.Tensor):
            raise refused
        return decode(image, **options)

    monkeypatch.setattr(torchvision.io, "decode_jpeg", of_old)
    file = batch_of(photos)[0].files()[0]
    assert [image.shape for image in decode_jpegs([file, file], torch.device("cpu"))] == [(3, 260, 300)] * 2


def test_another_error_of_the_decoder_is_not_hidden(photos: Photos, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Any, **__: Any) -> Any:
        raise RuntimeError("CUDA error: out of memory")

    monkeypatch.setattr(torchvision.io, "decode_jpeg", broken)
    with pytest.raises(RuntimeError, match="out of memory"):
        decode_jpegs(batch_of(photos)[0].files(), torch.device("cpu"))


def test_an_empty_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty.jpg").touch()
    with pytest.raises(BadImageError, match=r"empty\.jpg: the file is empty"):
        EncodedSamples([(str(tmp_path / "empty.jpg"), 0)])[0]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"transform": "imagenet_train_scaled"}, "cannot apply transform: imagenet_train_scaled"),
        ({"transform": "mine:crop"}, "cannot apply transform: mine:crop"),
        ({"image_cache": "shared_memory"}, "cannot be combined with image_cache"),
    ],
)
def test_what_a_device_cannot_do_with_files_is_said(photos: Photos, options: dict[str, Any], said: str) -> None:
    for decoder in ON_DEVICE:
        with pytest.raises(ValueError, match=f"decoder: {decoder} {said}"):
            ImageFolder(decoder=decoder, **options).build(DatasetOrder(photos, {}, Path()))


def test_only_files_leave_a_rest_to_the_device(photos: Photos, decoder: str) -> None:
    folder = ImageFolder()
    assert folder.rest_on_device({"decoder": "pillow"}, "cpu") is None
    assert folder.why_not_on_device({}) == ""
    rest = folder.rest_on_device({"decoder": decoder, "transform": "imagenet_eval"}, "cpu")
    assert rest is not None
    source = folder.build(DatasetOrder(photos, {"decoder": decoder}, Path())).source
    assert rest(default_collate([source[0]]))[0].shape == (1, 3, 224, 224)
