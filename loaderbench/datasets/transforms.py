"""The named recipes; each takes a PIL image or a uint8 tensor and gives float32 of shape (3, 224, 224), or the image's.

The numbers are those of torchvision's reference classification training.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

Transform = Callable[[Any], Any]


def imagenet_train() -> Transform:
    """RandomResizedCrop 224, flip, to tensor, normalise: the usual recipe."""
    from torchvision import transforms as t

    steps = [t.RandomResizedCrop(224), t.RandomHorizontalFlip(), ToTensor(), t.Normalize(MEAN, STD)]
    return cast("Transform", t.Compose(steps))


def imagenet_train_v2() -> Transform:
    """The same by transforms v2, in uint8 until the end: a quarter of the bytes to crop and to flip."""
    import torch
    from torchvision.transforms import v2

    steps = [
        v2.ToImage(),
        v2.RandomResizedCrop(224, antialias=True),
        v2.RandomHorizontalFlip(),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize(MEAN, STD),
    ]
    return cast("Transform", v2.Compose(steps))


def imagenet_eval() -> Transform:
    """Resize 256, centre crop 224, to tensor, normalise."""
    from torchvision import transforms as t

    steps = [t.Resize(256), t.CenterCrop(224), ToTensor(), t.Normalize(MEAN, STD)]
    return cast("Transform", t.Compose(steps))


def to_tensor() -> Transform:
    """Do nothing but convert, for folders whose images have one size."""
    return ToTensor()


class ToTensor:
    """torchvision's `ToTensor`, which also takes the uint8 tensors of the `torchvision` decoder."""

    def __call__(self, image: Any) -> Any:
        """Return float32 in [0, 1], channels first."""
        from torch import Tensor
        from torchvision.transforms.functional import convert_image_dtype, to_tensor

        return convert_image_dtype(image) if isinstance(image, Tensor) else to_tensor(image)


TRANSFORMS: Mapping[str, Callable[[], Transform]] = {
    "imagenet_train": imagenet_train,
    "imagenet_train_v2": imagenet_train_v2,
    "imagenet_eval": imagenet_eval,
    "to_tensor": to_tensor,
}
