"""On a real device: it decodes JPEGs to nearly the pixels of the CPU, and a run measures that."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from command_line import Cli
from torch.utils.data import DataLoader, default_collate

from loaderbench.datasets.encoded import DecodedOnDevice, EncodedSamples
from loaderbench.datasets.folder_scan import scan_image_folder
from loaderbench.datasets.image_folder import ON_DEVICE
from loaderbench.datasets.image_samples import TRANSFORMS
from loaderbench.store import read_run

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timed,  # one after another: they share the device
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]

RUN_TIMEOUT_S = 600.0
LEAST_PSNR_DB = 35.0
"""nvJPEG and libjpeg-turbo round differently, and may upsample colors differently."""


@pytest.fixture(params=ON_DEVICE)
def decoder(request: pytest.FixtureRequest) -> str:
    """Each that decodes on the GPU."""
    if request.param == "dali":
        pytest.importorskip("nvidia.dali.fn")
    return str(request.param)


def test_a_gpu_decodes_to_nearly_the_pixels_of_the_cpu(photos: Path, decoder: str) -> None:
    samples = scan_image_folder(photos, 32).samples
    batch = next(iter(DataLoader(EncodedSamples(samples), batch_size=len(samples))))
    made = {}
    for device in ("cuda", "cpu"):
        rest = DecodedOnDevice(device, TRANSFORMS["imagenet_eval"](False), normalize=False, decoder=decoder)
        images, labels = rest(batch)
        assert (images.device.type, images.dtype, rest.note) == (device, torch.uint8, "")
        assert labels.tolist() == [label for _, label in samples]
        made[device] = images.cpu().float()
    error = float(((made["cuda"] - made["cpu"]) ** 2).mean())
    assert error == 0 or 10 * math.log10(255**2 / error) > LEAST_PSNR_DB


def test_batches_of_another_stream_hold_their_own_images(photos: Path, decoder: str) -> None:
    """Each is read late, on a busy stream, when the decoder is at the next ones."""
    samples = scan_image_folder(photos, 32).samples
    files = EncodedSamples(samples)
    rest = DecodedOnDevice("cuda", TRANSFORMS["imagenet_eval"](False), normalize=False, decoder=decoder)
    alone = [rest(default_collate([files[index]]))[0].cpu() for index in range(len(samples))]
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda._sleep(200_000_000)  # cycles: about 0.1 s
        queued = [rest(default_collate([files[index]]))[0] for index in range(len(samples))]
        assert all(torch.equal(one.cpu(), other) for one, other in zip(queued, alone, strict=True))


def test_a_run_measures_it_next_to_pillow(command: Cli, photos: Path, tmp_path: Path, decoder: str) -> None:
    suite = Path(__file__).parents[2] / "suites" / "gpu.yaml"
    axes = ("-P", "batch_size=8", "-P", "num_workers=2", "-P", "pin_memory=true", "-P", f"decoder=pillow,{decoder}")
    flags = ("--rounds", "1", "--seconds", "1", "--no-verify", "--out", "r")
    result = command("run", suite, "--data", photos, *axes, *flags, timeout_s=RUN_TIMEOUT_S)
    assert result.returncode == 0, result.stderr
    trials = {trial.config["decoder"]: trial for trial in read_run(tmp_path / "r").sweep}
    assert {name: trial.status for name, trial in trials.items()} == {"pillow": "completed", decoder: "completed"}
    assert "decode" not in (trials[decoder].stages or {}), "workers decode nothing"
    assert trials[decoder].computed_in in ("bfloat16", "float16")
