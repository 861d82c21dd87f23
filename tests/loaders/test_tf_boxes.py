"""Random crops that TensorFlow draws are spread as torchvision's; torch and TensorFlow get along in one process."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torchvision.transforms import RandomResizedCrop  # noqa: E402

from loaderbench.imagenet import AREA, ASPECT_RATIO  # noqa: E402
from loaderbench.loaders.tf_data import TfData  # noqa: E402
from loaderbench.loaders.tf_images import DRAWS, random_box, tensorflow  # noqa: E402

if not TfData().is_installed():  # importing it here would end the process as soon as a test imports Triton
    pytest.skip("TensorFlow is not installed", allow_module_level=True)


def boxes(height: int, width: int, count: int) -> Any:
    """Crops drawn by TensorFlow, and as many by torchvision."""
    tf = tensorflow()
    draws = tf.random.stateless_uniform([count, DRAWS], [1, 2])
    ours = torch.tensor([random_box(tf, tf.constant([height, width]), row).numpy().tolist() for row in draws])
    image, usual = torch.empty(3, height, width), ([*AREA], [*ASPECT_RATIO])
    torch.manual_seed(0)
    return ours, torch.tensor([RandomResizedCrop.get_params(image, *usual) for _ in range(count)])


@pytest.mark.parametrize(("height", "width"), [(375, 500), (600, 260)])
def test_random_boxes_are_spread_as_those_of_torchvision(height: int, width: int) -> None:
    ours, theirs = (found.double() for found in boxes(height, width, 600))
    assert bool((ours[:, :2] >= 0).all())
    assert bool((ours[:, :2] + ours[:, 2:] <= torch.tensor([height, width])).all())
    for measure in (
        lambda found: found,
        lambda found: (found[:, 2] * found[:, 3])[:, None],
        lambda found: (found[:, 3] / found[:, 2]).log()[:, None],
    ):
        one, other = measure(ours), measure(theirs)
        error = (one.var(dim=0) / 600 + other.var(dim=0) / 600).sqrt()
        assert bool(((one.mean(dim=0) - other.mean(dim=0)).abs() < 4 * error).all())
        assert (one.std(dim=0) / other.std(dim=0)).log().abs().max() < math.log(1.15)


@pytest.mark.parametrize(("height", "width"), [(10, 3_000), (3_000, 10), (11, 3_001)])
def test_where_no_box_fits_the_one_in_the_center_is_torchvision_s(height: int, width: int) -> None:
    ours, theirs = boxes(height, width, 3)
    assert ours.tolist() == theirs.tolist()


@pytest.mark.slow
def test_triton_can_be_imported_after_tensorflow() -> None:
    pytest.importorskip("triton")
    code = "from loaderbench.loaders.tf_images import tensorflow; tensorflow(); import triton, torchvision"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
