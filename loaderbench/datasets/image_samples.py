"""A map-style dataset over image files, and the recipes that a suite names.

A recipe takes an image and gives a tensor of shape (3, 224, 224), or (3, height, width): normalised float32, or uint8
where it is to be normalised on the device. Its numbers are those of torchvision's reference classification training.
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
"""The argument says whether the transform normalises."""


class Recipe(NamedTuple):
    """A transform by its name, for loaders that have operations of their own for it."""

    name: str
    normalizes: bool


class ImageSamples(Dataset[tuple[Any, int]]):
    """Decodes and transforms on access. `loader` and `transform` are its stages, by torchvision's names.

    `recipe` is the transform's own, where it has a name. `copy` is that of a loader which reads one format only.
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
            raise _bad(path, error) from error
        try:
            return self.transform(image), label
        except OSError as error:
            if self.recipe is None:  # a transform of the user's own
                raise
            raise _bad(path, error) from error  # of an image that was only opened, and is decoded now

    def encoded(self, index: int) -> Any:
        """What `loader` decodes: a path, which it reads itself."""
        return self.samples[index][0]


class StoredSamples(ImageSamples):
    """The same from a copy in another format: `reader` gives the bytes of a sample, and is a stage, too."""

    def __init__(self, reader: ReadEncoded, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.reader = reader

    def encoded(self, index: int) -> bytes:
        """The bytes of a file."""
        return self.reader(index)


def imagenet_train(normalize: bool = True) -> Transform:
    """RandomResizedCrop 224, flip, to tensor, normalise: the usual recipe."""
    from torchvision import transforms as t

    return _compose([t.RandomResizedCrop(CROP), t.RandomHorizontalFlip()], normalize)


def imagenet_train_scaled(normalize: bool = True) -> Transform:
    """The same, where libjpeg decodes no more pixels than the crop needs; for images that are opened only."""
    from torchvision import transforms as t

    from loaderbench.datasets.scaled_crop import ScaledResizedCrop

    return _compose([ScaledResizedCrop(CROP), t.RandomHorizontalFlip()], normalize)


def imagenet_train_region(normalize: bool = True) -> Transform:
    """The same with the crop cut out first, of an image that may decode this region only; then as transforms v2."""
    from torchvision import transforms as t

    from loaderbench.datasets.region_crop import RegionResizedCrop

    return _compose([RegionResizedCrop(CROP), t.RandomHorizontalFlip()], normalize)


def imagenet_train_v2(normalize: bool = True) -> Transform:
    """The same by transforms v2, in uint8 until the end: a quarter of the bytes to crop and to flip."""
    import torch
    from torchvision.transforms import v2

    steps = [v2.ToImage(), v2.RandomResizedCrop(CROP, antialias=True), v2.RandomHorizontalFlip()]
    last = [v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)] if normalize else [v2.ToPureTensor()]
    return cast("Transform", v2.Compose([*steps, *last]))


def imagenet_eval(normalize: bool = True) -> Transform:
    """Resize 256, centre crop 224, to tensor, normalise."""
    from torchvision import transforms as t

    return _compose([t.Resize(SHORT_SIDE), t.CenterCrop(CROP)], normalize)


def to_tensor(normalize: bool = True) -> Transform:
    """Do nothing but convert, for folders whose images have one size; what is not normalised stays uint8."""
    return ToTensor() if normalize else ToUint8()


class ToTensor:
    """torchvision's `ToTensor`, which also takes uint8 tensors."""

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


def _bad(path: str, error: Exception) -> BadImageError:
    return BadImageError(f"{path}: {type(error).__name__}: {error}")


def _rgb(image: Any) -> Any:
    """An image that was opened only may be grey, or have a palette."""
    return image if image.mode == "RGB" else image.convert("RGB")


TRANSFORMS: Mapping[str, MakeTransform] = {
    "imagenet_train": imagenet_train,
    "imagenet_train_v2": imagenet_train_v2,
    "imagenet_train_scaled": imagenet_train_scaled,
    "imagenet_train_region": imagenet_train_region,
    "imagenet_eval": imagenet_eval,
    "to_tensor": to_tensor,
}
