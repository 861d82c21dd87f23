"""Decoders and recipes give what their names say, from real JPEGs."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

torch = pytest.importorskip("torch")

from loaderbench.datasets import encoded, image_folder  # noqa: E402
from loaderbench.datasets.decoders import DECODERS  # noqa: E402
from loaderbench.datasets.image_samples import TRANSFORMS, BadImageError, ImageSamples, Recipe  # noqa: E402


def first(photos: Path) -> str:
    return str(sorted(photos.rglob("*.jpg"))[0])


def test_the_suite_knows_every_decoder_and_recipe_by_name() -> None:
    assert {*DECODERS, *encoded.DECODERS} == set(image_folder.DECODER_NAMES)
    assert set(encoded.DECODERS) == set(image_folder.ON_DEVICE)
    assert set(TRANSFORMS) == set(image_folder.TRANSFORM_NAMES)


@pytest.mark.parametrize("decoder", sorted(DECODERS))
@pytest.mark.parametrize("recipe", ["imagenet_train", "imagenet_train_v2", "imagenet_eval"])
def test_every_decoder_feeds_every_recipe(photos: Path, decoder: str, recipe: str) -> None:
    if decoder == "nvimagecodec":
        pytest.importorskip("nvidia.nvimgcodec.nvimgcodec_impl")
    dataset = ImageSamples([(first(photos), 3)], DECODERS[decoder], TRANSFORMS[recipe]())
    image, label = dataset[0]
    assert (tuple(image.shape), image.dtype, label) == ((3, 224, 224), torch.float32, 3)


def test_pillow_and_torchvision_decode_the_same_picture(photos: Path) -> None:
    to_tensor = TRANSFORMS["to_tensor"]()
    ours, theirs = (to_tensor(DECODERS[name](first(photos))) for name in ("pillow", "torchvision"))
    assert ours.shape == theirs.shape
    assert (ours - theirs).abs().mean() < 0.01


def test_a_picture_of_16_bits_becomes_one_of_8(tmp_path: Path) -> None:
    Image.fromarray(np.full((8, 8), 0xAB12, np.uint16)).save(tmp_path / "deep.png")
    pixels = DECODERS["torchvision"](str(tmp_path / "deep.png"))
    assert pixels.dtype is torch.uint8
    assert set(pixels.unique().tolist()) == {0xAB}


def test_a_corrupt_image_is_named_by_its_path(tmp_path: Path) -> None:
    bad = tmp_path / "bad.jpg"
    bad.write_bytes(b"no JPEG")
    always = DECODERS.keys() - {"nvimagecodec"}  # tests/datasets/test_jpeg_regions.py has its errors
    for decoder in map(DECODERS.__getitem__, always):
        with pytest.raises(BadImageError, match=str(bad)):
            ImageSamples([(str(bad), 0)], decoder, TRANSFORMS["to_tensor"]())[0]


@pytest.fixture
def broken_png(tmp_path: Path) -> str:
    """A PNG with a good header, whose second block of pixels has no valid name."""
    file = tmp_path / "broken.png"
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (300, 300, 3), np.uint8)).save(file)
    start, first, rest = file.read_bytes().partition(b"IDAT")
    file.write_bytes(start + first + rest.replace(b"IDAT", bytes([255] * 4), 1))
    return str(file)


@pytest.mark.parametrize("decoder", ["pillow", "pillow_lazy"])
@pytest.mark.parametrize("recipe", ["imagenet_train", "imagenet_train_v2", "imagenet_train_scaled", "to_tensor"])
def test_a_broken_png_is_named_by_its_path_whenever_it_is_decoded(broken_png: str, decoder: str, recipe: str) -> None:
    with pytest.raises(BadImageError, match=f"{broken_png}: SyntaxError: broken PNG"):
        ImageSamples([(broken_png, 0)], DECODERS[decoder], TRANSFORMS[recipe](), Recipe(recipe, True))[0]


def test_an_error_of_the_transform_is_no_bad_image(photos: Path, broken_png: str) -> None:
    def fails(image: Image.Image) -> Image.Image:
        image.load()
        raise ValueError("no such size")

    with pytest.raises(ValueError, match="no such size"):
        ImageSamples([(first(photos), 0)], DECODERS["pillow"], fails, Recipe("to_tensor", True))[0]
    with pytest.raises(SyntaxError, match="broken PNG"):  # the transform of a user
        ImageSamples([(broken_png, 0)], DECODERS["pillow_lazy"], fails)[0]


@pytest.mark.parametrize("mode", ["L", "LA", "P", "RGBA", "CMYK", "1", "I;16"])
@pytest.mark.parametrize("recipe", sorted({*TRANSFORMS} - {"imagenet_train_region"}))
@pytest.mark.parametrize("normalize", [True, False])
def test_an_image_of_any_mode_that_was_opened_only_becomes_rgb(
    tmp_path: Path, mode: str, recipe: str, normalize: bool
) -> None:
    file = tmp_path / "a.tiff"
    gray = Image.new("L", (300, 260), 7)
    (Image.fromarray(np.full((260, 300), 700, np.uint16)) if mode == "I;16" else gray.convert(mode)).save(file)
    image = TRANSFORMS[recipe](normalize)(DECODERS["pillow_lazy"](str(file)))
    assert (image.shape[0], image.dtype) == (3, torch.float32 if normalize else torch.uint8)
