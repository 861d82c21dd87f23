"""The dataset kind `image_folder`: images under `root/class/`, decoded and transformed as the suite says."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, cast

from pydantic import Field

from loaderbench import object_store
from loaderbench.datasets import dali, folder_code, nvimagecodec
from loaderbench.datasets.folder_scan import ImageFiles, scan_image_folder
from loaderbench.datasets.kind import Ask, DatasetOfOptions, DatasetOrder, Inputs, PrepareListener, Rest, Samples
from loaderbench.datasets.own_transform import own_transform
from loaderbench.errors import MissingError
from loaderbench.formats import FILES, FORMATS, ReadEncoded, check_formats, copies_of
from loaderbench.imagenet import CROP
from loaderbench.options import Check, Count, Part, Seed, boolean, integer, not_one_of, one_of, text, text_or_null
from loaderbench.records import DatasetSummary, PixelChange
from loaderbench.records.words import count
from loaderbench.targets import find_target
from loaderbench.user_paths import expanded

if TYPE_CHECKING:
    from loaderbench.datasets.decoders import Decoder

ON_DEVICE = ("device", "dali")
"""Decoders that run on the device of the training step: torchvision's, and NVIDIA DALI's."""
DECODER_NAMES = ("pillow", "pillow_draft", "pillow_lazy", "torchvision", "simplejpeg", "nvimagecodec", *ON_DEVICE)
TRANSFORM_NAMES = (
    *("imagenet_train", "imagenet_train_v2", "imagenet_train_scaled", "imagenet_train_region"),
    *("imagenet_eval", "to_tensor"),
)
DEVICE_TRANSFORMS = ("imagenet_train", "imagenet_train_v2", "imagenet_eval", "to_tensor")
"""Transforms that accept tensors as well as Pillow images, and therefore images decoded on a GPU."""
_CHECKED_BY = {"pillow_lazy": "pillow", **dict.fromkeys(ON_DEVICE, "torchvision")}
"""The decoder that finds bad files in place of a decoder that runs later, or elsewhere."""
SMALLEST_SIDE, LARGEST_SIDE = 32, 8_192  # pixels
MOST_COPIES = 2_000
"""At most this many images of a larger folder are resized to measure smaller images; all would take minutes."""
MOST_FILES = 1_000_000_000
_FLOAT_BYTES = 4


def recipe(value: Any) -> str | None:
    """Accept a recipe's name, or `package.module:callable`, which is imported only when a trial runs."""
    if (what := text(value)) or ":" in value or value in TRANSFORM_NAMES:
        return what
    return not_one_of(value, [*TRANSFORM_NAMES, "package.module:callable"])


def copied_stride(count: int) -> int:
    """One in this many of `count` images is resized to measure smaller images."""
    return max(1, math.ceil(count / MOST_COPIES))


class Generate(Part):
    """Synthetic JPEGs, generated when `root` is empty."""

    images: Annotated[int, Field(ge=2, le=1_000_000)] = 512
    like: Literal["imagenet"] = "imagenet"
    seed: Seed = 0


class ImageFolder(DatasetOfOptions):
    """A folder of images as `torchvision.datasets.ImageFolder` reads it: `root/class/name.jpg`.

    `normalize: device` keeps batches uint8 and normalizes them on the GPU. `decoder: device` and `dali` read files in
    workers and do everything else on the GPU. `presize` reads copies whose short side has this many pixels. `format`
    reads a copy in another format, and `storage` the same files in an object store. `image_cache` keeps decoded images,
    and `skip_bad` skips files that cannot be decoded.
    """

    axes: ClassVar[Mapping[str, Check]] = {
        "decoder": one_of(*DECODER_NAMES),
        "transform": recipe,
        "normalize": one_of("worker", "device"),
        "presize": integer(SMALLEST_SIDE, LARGEST_SIDE, or_null=True),
        "format": one_of(FILES, *FORMATS),
        "storage": object_store.wrong_url,
        "image_cache": one_of("shared_memory", None),
    }
    data_axes: ClassVar[Mapping[str, Check]] = {
        "root": text_or_null,
        "sample": integer(1, MOST_FILES, or_null=True),
        "skip_bad": boolean,
    }
    amount_axes: ClassVar[tuple[str, ...]] = ("sample", "skip_bad")
    texts: ClassVar[tuple[str, ...]] = ("root", "transform", "storage")
    change_samples: ClassVar[tuple[str, ...]] = ("presize",)
    smaller_samples: ClassVar[Mapping[str, Any]] = {"normalize": "device"}
    why_no_files: ClassVar[str] = ""
    storing_axes: ClassVar[tuple[str, ...]] = ("format", "storage", "image_cache")
    decoding_axes: ClassVar[tuple[str, ...]] = ("decoder", *storing_axes)
    store_axis: ClassVar[str] = "storage"

    kind: Literal["image_folder"] = "image_folder"
    root: str | None = None
    generate: Generate = Generate()
    sample: Count | None = 20_000
    decoder: Annotated[str, Field(json_schema_extra={"enum": list(DECODER_NAMES)})] = "pillow"
    transform: Annotated[
        str, Field(json_schema_extra={"anyOf": [{"enum": list(TRANSFORM_NAMES)}, {"pattern": ":"}]})
    ] = "imagenet_train"
    normalize: str = "worker"
    presize: int | None = None
    format: Annotated[str, Field(json_schema_extra={"enum": [FILES, *FORMATS]})] = FILES
    storage: str | None = None
    image_cache: str | None = None
    skip_bad: bool = False

    def describe(self, sweep: Mapping[str, Any], folder: Path) -> str:
        """Count the files, or say what will be generated."""
        self._check_packages(sweep)
        root = self._root(folder)
        if root is None:
            return f"{self.generate.images:,} synthetic JPEGs, generated once and cached"
        files = self._scan(root)
        return self._describe_files(len(files.samples), len(files.classes), files.complete)

    def prepare(self, sweep: Mapping[str, Any], folder: Path, listener: PrepareListener) -> Inputs:
        """Find the files, or generate them."""
        self._check_packages(sweep)
        own_root, made = self._root(folder), self.generate
        root, description = own_root, None
        if root is None:
            from loaderbench.datasets.photos import cached_photos

            listener.doing(f"looking for {made.images:,} synthetic JPEGs in the cache")
            root = cached_photos(images=made.images, seed=made.seed, like=made.like, on_progress=listener.generating)
            like = {"imagenet": "ImageNet"}[made.like]
            description = f"{made.images:,} synthetic JPEGs (statistics of {like}, seed {made.seed})"
        else:
            listener.doing(f"looking for images in {root}")
        files = self._scan(root)
        count, classes = len(files.samples), len(files.classes)
        description = description or self._describe_files(count, classes, files.complete)
        total = count if files.complete else None
        reasons = {"bad_files": "not checked: dataset.skip_bad is off"}
        if total is None:
            reasons["total_files"] = "only part of the folder was listed"
        place = None if own_root is None else str(own_root.resolve())
        if place is None:
            reasons["root"] = "the images are generated"
        summary = DatasetSummary(description, count, classes, total, not_measured=reasons, root=place)
        return Inputs(files.samples, summary)

    def targets(self, sweep: Mapping[str, Any]) -> list[str]:
        """Transforms of the user."""
        return [name for name in _values(sweep, "transform", self.transform) if isinstance(name, str) and ":" in name]

    def without_bad(self, inputs: Inputs, sweep: Mapping[str, Any], ask: Ask, listener: PrepareListener) -> Inputs:
        """Decode each file once with each decoder of the suite, if `skip_bad` is set."""
        if not self.skip_bad:
            return inputs
        from loaderbench.datasets.bad_images import leave_out

        named = _values(sweep, "decoder", self.decoder)
        decoders = {_CHECKED_BY.get(str(name), str(name)) for name in named}
        found = leave_out(inputs, sorted(decoders), ask, listener)
        return found if self.root is None else replace(found, summary=self._described_again(found.summary))

    def samples_for(self, samples: Samples, listener: PrepareListener) -> Samples:
        """Return pre-resized copies of the files if `presize` is set."""
        if not isinstance(self.presize, int):
            return samples
        from loaderbench.datasets.presized import presized_copies

        chosen = samples[:: copied_stride(len(samples))]
        listener.doing(f"pre-resizing {len(chosen):,} images to {self.presize} px (short side)")
        return presized_copies(chosen, self.presize, on_progress=partial(listener.writing, "smaller JPEGs"))

    @property
    def lists_files(self) -> bool:
        """True with any transform."""
        return True

    @property
    def lists_images(self) -> bool:
        """True with a named transform and a decoder of the CPU."""
        return ":" not in self.transform and self.decoder not in ON_DEVICE

    @property
    def stored_as(self) -> str:
        """The format; `files` with an image cache, which reads each file once and keeps the decoded image."""
        return FILES if self.image_cache is not None else self.format

    def why_not_together(self) -> str:
        """`storage` excludes copies and caches of local files; some transforms need certain options."""
        of_files = {"format": FILES, "presize": None, "image_cache": None}
        given = [option for option, usual in of_files.items() if getattr(self, option) != usual]
        if self.storage is not None and given:
            return f"storage cannot be combined with {' and '.join(given)}"
        if self.normalize == "device" and ":" in self.transform:
            return f"normalize device has no effect on transform {self.transform}"
        if self.decoder in ON_DEVICE and self.image_cache is not None:
            return f"decoder {self.decoder} cannot be combined with image_cache"
        on_device = self.decoder in ON_DEVICE and self.transform not in DEVICE_TRANSFORMS
        if on_device or (self.transform == "imagenet_train_scaled" and not self.decoder.startswith("pillow")):
            return f"decoder {self.decoder} cannot be combined with transform {self.transform}"
        return ""

    @property
    def store(self) -> str | None:
        """The value of `storage`, without a trailing slash."""
        return self.storage and self.storage.rstrip("/")

    def check_store(self, samples: Samples, folder: Path) -> None:
        """Read the first file."""
        if self.storage is not None:
            object_store.check_store(self.storage, self._names(samples[:1], folder))

    @property
    def is_shared(self) -> bool:
        """True if images are in shared memory."""
        return self.image_cache is not None

    def make(self, samples: Samples, folder: Path) -> Any:
        """Create the dataset from the original files."""
        return self.make_from(DatasetOrder(samples, {}, folder))

    def make_from(self, order: DatasetOrder) -> Any:
        """Create a map-style dataset from the decoder and the transform."""
        from loaderbench.datasets import image_samples as images

        samples, reader = order.samples, self._reader(order)
        if self.decoder in ON_DEVICE:
            from loaderbench.datasets.encoded import EncodedSamples

            self._check_on_device()
            return EncodedSamples(samples, reader)
        decoder = self._decoder()
        if self.image_cache == "shared_memory" and order.copy is None:
            from loaderbench.datasets.shared_images import SharedImages, room_bytes

            decoder = cast("Decoder", SharedImages(samples, images.decoded_at_once(decoder), room_bytes=room_bytes()))
        named, normalize = images.TRANSFORMS.get(self.transform), self.normalize != "device"
        recipe = images.Recipe(self.transform, normalize) if named else None
        transform = named(normalize) if named else own_transform(find_target(self.transform, order.folder))
        how = decoder, transform, recipe
        if reader is not None:
            return images.StoredSamples(reader, samples, *how, order.copy)
        return images.ImageSamples(samples, *how, order.copy)

    def _reader(self, order: DatasetOrder) -> ReadEncoded | None:
        """The reader of objects or of a copy in this format; `None` for plain files, or a copy for the loader."""
        copy = order.copy
        if self.storage is not None and copy is None:
            return self._objects(self.storage, order.samples, order.folder)
        if copy is None or self.stored_as == FILES or copy.about.format != self.format:
            return None
        return copy.reader(FORMATS[self.format])

    def rest_on_device(self, arguments: Mapping[str, Any], device: str) -> Rest | None:
        """Decode, transform and normalize on the device, with a decoder that runs there. Raises the decoder's error."""
        own = self.with_axes(arguments)
        if own.decoder not in ON_DEVICE:
            return None
        from loaderbench.datasets.encoded import DecodedOnDevice
        from loaderbench.datasets.image_samples import TRANSFORMS

        transform, normalize = TRANSFORMS[own.transform](False), own.normalize != "device"
        standardize = own.transform != "to_tensor"
        return DecodedOnDevice(device, transform, normalize=normalize, standardize=standardize, decoder=own.decoder)

    def why_not_on_device(self, arguments: Mapping[str, Any]) -> str:
        """GPU decoders read files from host memory."""
        decoder = self.with_axes(arguments).decoder
        return f"decoder={decoder}: the GPU decodes files from host memory" if decoder in ON_DEVICE else ""

    def sample_bytes(self) -> int | None:
        """Bytes of a crop; unknown for a custom transform, and for encoded files."""
        if self.decoder in ON_DEVICE:
            return None
        each = 1 if self.normalize == "device" else _FLOAT_BYTES
        return None if ":" in self.transform else 3 * CROP * CROP * each

    def hint_unreadable(self, samples: Samples, message: str, hint: str) -> str:
        """Whether the file itself, its copy or the decoder is at fault, and how many such files there are."""
        from loaderbench.datasets.bad_images import hint_of_bad_image

        return hint_of_bad_image(samples, message, hint, decoder=self.decoder, copied=self._where_copied())

    def _where_copied(self) -> str:
        """What a trial reads instead of the files, and how to recreate it; empty if it reads the files."""
        if self.storage is not None:
            return f"the object in {self.storage} is damaged: upload it again"
        if self.stored_as != FILES:
            return f"the copy is damaged: delete {copies_of(self.stored_as)} to write it again"
        return ""

    def pixel_changes(self, pairs: Sequence[tuple[DatasetOrder, DatasetOrder]], ask: Ask) -> list[PixelChange]:
        """Compare the results of decoder, transform and size on the same images."""
        from loaderbench.datasets.pixels import pixel_changes

        return pixel_changes(self, pairs, ask)

    def code(self, ranks: int = 1, classes: int | None = None) -> Sequence[str]:
        """A dataset of the same files and labels, with the same decoder, transform, copies and cache."""
        options = {name: getattr(self, name) for name in self.option_axes()}
        return [*folder_code.folder_code(options, ranks, classes)]

    def code_after(self) -> str:
        """Decode or normalize on the device if the workers do not."""
        if self.decoder in ON_DEVICE:
            return folder_code.decoded_on_device(self.transform, self.decoder)
        return folder_code.normalized_on_device(self.transform) if self.normalize == "device" else ""

    def _objects(self, url: str, samples: Samples, folder: Path) -> object_store.ObjectStore:
        """The samples in an object store. Raises `ValueError` for options that need local files."""
        if why := self.why_not_together():
            raise ValueError(why)
        return object_store.ObjectStore(url, self._names(samples, folder))

    def _names(self, samples: Samples, folder: Path) -> list[str]:
        """Names of the objects that hold the samples."""
        root = self._root(folder) or Path(samples[0][0]).parents[1]
        return object_store.names_below(Path(os.path.normpath(root)), samples)  # as in the paths of the samples

    def _root(self, folder: Path) -> Path | None:
        """The image folder, relative to the suite's folder; `None` if photos are to be generated."""
        return folder / expanded(self.root) if self.root else None

    def _scan(self, root: Path) -> ImageFiles:
        """The files below `root`. Raises `MissingError` if there are none."""
        try:
            return scan_image_folder(root, self.sample)
        except MissingError as error:
            raise MissingError(str(error), self.root) from None

    def _decoder(self) -> Decoder:
        """The function that decodes a file, or only opens it for a transform that decodes a region."""
        if nvimagecodec.only_regions(self.decoder, self.transform, self.image_cache):
            from loaderbench.datasets.jpeg_regions import open_jpeg

            return open_jpeg
        from loaderbench.datasets.decoders import DECODERS

        return DECODERS[self.decoder]

    def _check_on_device(self) -> None:
        """Raise `ValueError` for options that do not work with a decoder on the device."""
        if self.transform not in DEVICE_TRANSFORMS:
            known = ", ".join(DEVICE_TRANSFORMS)
            raise ValueError(f"decoder: {self.decoder} cannot apply transform: {self.transform}; use one of {known}")
        if self.image_cache is not None:
            raise ValueError(f"decoder: {self.decoder} cannot be combined with image_cache; drop one of them")

    def _check_packages(self, sweep: Mapping[str, Any]) -> None:
        """Raise `MissingError` for a decoder whose package is missing, since all of its trials would fail."""
        named = [self.decoder, *_values(sweep, "decoder", self.decoder)]
        if "simplejpeg" in named and find_spec("simplejpeg") is None:
            raise MissingError("decoder simplejpeg: package not installed; run `uv pip install simplejpeg`")
        if nvimagecodec.DECODER in named and not nvimagecodec.is_installed():
            raise MissingError(
                f"decoder nvimagecodec: nvImageCodec 0.9 or newer is not installed; run `{nvimagecodec.INSTALL}`"
            )
        check_formats([self.format, *map(str, _values(sweep, "format", self.format))])
        if "dali" in named and not dali.is_installed():
            raise MissingError(f"decoder dali: package not installed; run `{dali.INSTALL}`")

    def _described_again(self, summary: DatasetSummary) -> DatasetSummary:
        """The summary with a description of the files that are left."""
        is_complete = summary.total_files is not None
        described = self._describe_files(summary.files or 0, summary.classes or 0, is_complete)
        return replace(summary, description=described)

    def _describe_files(self, files: int, classes: int, complete: bool) -> str:
        sampled = "" if complete else " (sampled from a larger folder)"
        return f"{count(files, 'image')} of {count(classes, 'class', 'classes')} in {self.root or ''}{sampled}"


def _values(sweep: Mapping[str, Any], axis: str, fixed: Any) -> list[Any]:
    """All values of an option in a run."""
    given = sweep.get(axis, fixed)
    return given if isinstance(given, list) else [given]
