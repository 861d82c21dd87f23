"""A map-style dataset of image files, and the named transform recipes of a suite.

A recipe maps an image to a tensor of shape (3, 224, 224) or (3, height, width): normalized float32, or uint8 if the
device normalizes. Its parameters are those of torchvision's reference training script for classification.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from torch.utils.data import Dataset

from loaderbench.errors import BadImageError
from loaderbench.formats import ReadEncoded, StoredCopy
from loaderbench.imagenet import CROP, MEAN, SHORT_SIDE, STD

Transform = Callable[[Any], Any]
MakeTransform = Callable[[bool], Transform]
"""The argument says whether the transform normalizes."""


class Recipe(NamedTuple):
    """The name of a transform, for loaders that implement it with their own operations."""

    name: str
    normalizes: bool


class ImageSamples(Dataset[tuple[Any, int]]):
    """Decode and transform an image on access. `loader` and `transform` are the stages, named as in torchvision.

    `recipe` describes the transform if it has a name. `copy` is a copy of the files for a loader that reads only one
    format.
    """

    def __init__(
        self,
        samples: Sequence[tuple[str, int]],
        loader: Callable[[str], Any],
        transform: Callable[[Any], Any],
        recipe: Recipe | None = None,
        copy: StoredCopy | None = None,
    ) -> None:
        self.samples = samples
        self.loader = loader
        self.transform = transform
        self.recipe = recipe
        self.copy = copy

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        path, label = self.samples[index]
        encoded = self.encoded(index)
        try:
            image = self.loader(encoded)
        except Exception as error:
            raise _bad_image(path, error) from error
        try:
            return self.transform(image), label
        except Exception as error:
            if self.recipe is None or not (isinstance(error, OSError) or _is_opened(image)):  # the transform's own
                raise
            raise _bad_image(path, error) from error  # the transform decodes an image that `loader` only opened

    def encoded(self, index: int) -> Any:
        """The input of `loader`: a path, which `loader` reads."""
        return self.samples[index][0]


class StoredSamples(ImageSamples):
    """An `ImageSamples` over a copy in another format. `reader`, a further stage, returns the bytes of a sample."""

    def __init__(self, reader: ReadEncoded, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.reader = reader

    def encoded(self, index: int) -> bytes:
        """The contents of the file."""
        return self.reader(index)


def imagenet_train(normalize: bool = True) -> Transform:
    """RandomResizedCrop 224, flip, to tensor, normalize: the usual recipe."""
    from torchvision import transforms as t

    return _compose([t.RandomResizedCrop(CROP), t.RandomHorizontalFlip()], normalize)


def imagenet_train_scaled(normalize: bool = True) -> Transform:
    """`imagenet_train` on lazily opened images: libjpeg decodes no more pixels than the crop needs."""
    from torchvision import transforms as t

    from loaderbench.datasets.scaled_crop import ScaledResizedCrop

    return _compose([ScaledResizedCrop(CROP), t.RandomHorizontalFlip()], normalize)


def imagenet_train_region(normalize: bool = True) -> Transform:
    """`imagenet_train` that crops first, from images that can decode only this region; then as transforms v2 does."""
    from torchvision import transforms as t

    from loaderbench.datasets.region_crop import RegionResizedCrop

    return _compose([RegionResizedCrop(CROP), t.RandomHorizontalFlip()], normalize)


def imagenet_train_v2(normalize: bool = True) -> Transform:
    """`imagenet_train` with transforms v2, in uint8 until the end: a quarter of the bytes to crop and to flip."""
    import torch
    from torchvision.transforms import v2

    steps = [ToImage(), v2.RandomResizedCrop(CROP, antialias=True), v2.RandomHorizontalFlip()]
    last = [v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)] if normalize else [v2.ToPureTensor()]
    return cast("Transform", v2.Compose([*steps, *last]))


def imagenet_eval(normalize: bool = True) -> Transform:
    """Resize 256, center crop 224, to tensor, normalize."""
    from torchvision import transforms as t

    return _compose([t.Resize(SHORT_SIDE), t.CenterCrop(CROP)], normalize)


def to_tensor(normalize: bool = True) -> Transform:
    """Only convert to a tensor, for folders of images of one size; uint8 unless normalized."""
    return ToTensor() if normalize else ToUint8()


class ToImage:
    """The `ToImage` of transforms v2, in RGB."""

    def __call__(self, image: Any) -> Any:
        """Return an image of transforms v2, channels first."""
        from torch import Tensor
        from torchvision.transforms.v2.functional import to_image

        return to_image(image if isinstance(image, Tensor) else _rgb(image))


class ToTensor:
    """torchvision's `ToTensor`, but it also accepts uint8 tensors."""

    def __call__(self, image: Any) -> Any:
        """Return float32 in [0, 1], channels first."""
        from torch import Tensor
        from torchvision.transforms.functional import convert_image_dtype, to_tensor

        return convert_image_dtype(image) if isinstance(image, Tensor) else to_tensor(_rgb(image))


class ToUint8:
    """The unchanged image as a tensor."""

    def __call__(self, image: Any) -> Any:
        """Return uint8, channels first."""
        from torch import Tensor
        from torchvision.transforms.functional import pil_to_tensor

        return image if isinstance(image, Tensor) else pil_to_tensor(_rgb(image))


def _compose(steps: list[Any], normalize: bool) -> Transform:
    from torchvision import transforms as t

    last = [ToTensor(), t.Normalize(MEAN, STD)] if normalize else [ToUint8()]
    return cast("Transform", t.Compose([*steps, *last]))


def decoded_at_once(decoder: Callable[[str], Any]) -> Callable[[str], Any]:
    """Wrap a decoder to decode the whole image at once, and to raise `BadImageError` with the path of the file."""

    def decode(path: str) -> Any:
        try:
            image = decoder(path)
            getattr(image, "load", bool)()  # Pillow decodes an opened image only now
        except Exception as error:
            raise _bad_image(path, error) from error
        return image

    return decode


def _is_opened(image: Any) -> bool:
    """Whether an image is one of Pillow's that is decoded on first use: only these have tiles."""
    return hasattr(image, "tile")


def _bad_image(path: str, error: Exception) -> BadImageError:
    return BadImageError(f"{path}: {type(error).__name__}: {error}")


def _rgb(image: Any) -> Any:
    """Convert to RGB: a lazily opened image can be grayscale or have a palette."""
    return image if image.mode == "RGB" else image.convert("RGB")


TRANSFORMS: Mapping[str, MakeTransform] = {
    "imagenet_train": imagenet_train,
    "imagenet_train_v2": imagenet_train_v2,
    "imagenet_train_scaled": imagenet_train_scaled,
    "imagenet_train_region": imagenet_train_region,
    "imagenet_eval": imagenet_eval,
    "to_tensor": to_tensor,
}
