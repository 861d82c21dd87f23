"""Typical loaders of other libraries, for `tuning.py`: each a dataset with torch's default arguments."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset
from torchvision.datasets import ImageFolder
from torchvision.io import ImageReadMode, decode_image, read_file
from torchvision.transforms import v2

BATCH = 32
SIDE = 224

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


class Items(Dataset[Any]):
    """A dataset of `make(item)` for each item, repeated to make an epoch long."""

    def __init__(self, items: list[Any], make: Callable[[Any], Any], times: int = 200) -> None:
        self.items, self.make, self.times = items, make, times

    def __len__(self) -> int:
        return len(self.items) * self.times

    def __getitem__(self, index: int) -> Any:
        return self.make(self.items[index % len(self.items)])


def photos_in(root: Path) -> list[Path]:
    return sorted(root.rglob("*.jpg"))


def torchvision_preset(root: Path, _: Path) -> DataLoader[Any]:
    """The transforms of torchvision's reference script for classification, on Pillow images."""
    augment = v2.Compose([
        v2.RandomResizedCrop(SIDE), v2.RandomHorizontalFlip(), v2.TrivialAugmentWide(), v2.PILToTensor(),
        v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD), v2.RandomErasing(p=0.1), v2.ToPureTensor(),
    ])  # fmt: skip
    folder = ImageFolder(str(root), augment)
    return DataLoader(Items(list(range(len(folder))), folder.__getitem__), BATCH, shuffle=True)


def torchvision_tensors(root: Path, _: Path) -> DataLoader[Any]:
    """Images decoded by torchvision, and transformed as tensors."""
    augment = v2.Compose([v2.RandomResizedCrop(SIDE, antialias=True), v2.RandomHorizontalFlip()])

    def make(path: Path) -> Any:
        return augment(decode_image(read_file(str(path)), ImageReadMode.RGB))

    return DataLoader(Items(photos_in(root), make), BATCH, shuffle=True)


def timm_augmented(root: Path, _: Path) -> DataLoader[Any]:
    from timm.data import create_transform

    augment = create_transform(SIDE, is_training=True, auto_augment="rand-m6-mstd0.5-inc1", re_prob=0.25)
    folder = ImageFolder(str(root), augment)
    return DataLoader(Items(list(range(len(folder))), folder.__getitem__), BATCH, shuffle=True)


def albumentations_augmented(root: Path, _: Path) -> DataLoader[Any]:
    import albumentations
    import cv2

    augment = albumentations.Compose([
        albumentations.RandomResizedCrop(size=(SIDE, SIDE)), albumentations.HorizontalFlip(),
        albumentations.ColorJitter(), albumentations.Normalize(),
    ])  # fmt: skip

    def make(path: Path) -> Any:
        image = cv2.cvtColor(cv2.imread(str(path)), cv2.COLOR_BGR2RGB)
        return torch.from_numpy(augment(image=image)["image"].transpose(2, 0, 1).copy())

    return DataLoader(Items(photos_in(root), make), BATCH, shuffle=True)


def opencv_resized(root: Path, _: Path) -> DataLoader[Any]:
    import cv2

    def make(path: Path) -> Any:
        return torch.from_numpy(cv2.resize(cv2.imread(str(path)), (SIDE, SIDE)).transpose(2, 0, 1).copy())

    return DataLoader(Items(photos_in(root), make), BATCH, shuffle=True)


def hdf5_chunks(_: Path, work: Path) -> DataLoader[Any]:
    """Compressed chunks; each process opens the file separately."""
    import h5py

    place = work / "images.h5"
    pixels = np.random.default_rng(0).integers(0, 60, (256, 96, 96, 3), dtype=np.uint8)
    with h5py.File(place, "w") as file:
        file.create_dataset("images", data=pixels, chunks=(1, 96, 96, 3), compression="gzip")
    opened: list[Any] = []

    def make(index: int) -> Any:
        if not opened:
            opened.append(h5py.File(place)["images"])
        return torch.from_numpy(opened[0][index]).permute(2, 0, 1).float() / 255

    return DataLoader(Items(list(range(256)), make), BATCH, shuffle=True)


def zip_archive(root: Path, work: Path) -> DataLoader[Any]:
    """JPEGs in a zip file; each process opens the file separately."""
    from PIL import Image

    place, names = work / "photos.zip", photos_in(root)
    with zipfile.ZipFile(place, "w") as archive:
        for path in names:
            archive.write(path, path.name)
    opened: list[zipfile.ZipFile] = []
    shrink = v2.Compose([v2.Resize((SIDE, SIDE)), v2.PILToTensor()])

    def make(path: Path) -> Any:
        if not opened:
            opened.append(zipfile.ZipFile(place))
        return shrink(Image.open(io.BytesIO(opened[0].read(path.name))).convert("RGB"))

    return DataLoader(Items(names, make), BATCH, shuffle=True)


def webdataset_shards(root: Path, work: Path) -> DataLoader[Any]:
    """Tar files, read in order."""
    import webdataset

    names = photos_in(root)
    for shard in range(8):
        with tarfile.open(work / f"{shard}.tar", "w") as archive:
            for path in names[shard::8]:
                archive.add(path, path.name)
    shrink = v2.Compose([v2.Resize((SIDE, SIDE)), v2.PILToTensor()])
    shards = [str(work / f"{shard}.tar") for shard in range(8)] * 50
    found = webdataset.WebDataset(shards, shardshuffle=False).decode("pil").to_tuple("jpg").map_tuple(shrink)
    return DataLoader(found, BATCH)


def arrays_in_memory(_: Path, __: Path) -> DataLoader[Any]:
    """Samples that cost almost nothing, so workers cost more than they save."""
    return DataLoader(TensorDataset(torch.zeros(2_000_000, 64), torch.zeros(2_000_000)), 256, shuffle=True)


def memory_mapped(_: Path, work: Path) -> DataLoader[Any]:
    """Rows of a memory-mapped array, like a tokenized text."""
    place = work / "tokens.npy"
    np.save(place, np.random.default_rng(0).integers(0, 50_000, 4_000_000, dtype=np.uint16))
    tokens = np.load(place, mmap_mode="r")

    def make(index: int) -> Any:
        row = torch.from_numpy(tokens[index * 512 : (index + 1) * 512].astype(np.int64))
        return row[:-1], row[1:]

    return DataLoader(Items(list(range(7_000)), make, times=200), BATCH, shuffle=True)


LOADERS: dict[str, Callable[[Path, Path], DataLoader[Any]]] = {
    one.__name__: one
    for one in (
        torchvision_preset,
        torchvision_tensors,
        timm_augmented,
        albumentations_augmented,
        opencv_resized,
        hdf5_chunks,
        zip_archive,
        webdataset_shards,
        arrays_in_memory,
        memory_mapped,
    )
}
