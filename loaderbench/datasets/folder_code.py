"""Code to paste that creates `dataset` from `root`, with the measured decoder, transform, copies and cache."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

from loaderbench.datasets.nvimagecodec import DECODER, DRAWS_FIRST, only_regions

_DATASETS = Path(__file__).parent
MEAN, STD = "[0.485, 0.456, 0.406]", "[0.229, 0.224, 0.225]"

_DECODERS = {
    "pillow": "",
    "pillow_draft": """
        from PIL import Image

        def decode(path):
            with Image.open(path) as image:
                image.draft("RGB", (256, 256))  # libjpeg decodes at a reduced scale, at least this size
                return image.convert("RGB")
        """,
    "pillow_lazy": """
        from PIL import Image

        decode = Image.open  # reads the header; the crop decodes
        """,
    "torchvision": """
        from torchvision.io import ImageReadMode, decode_image, read_file

        def decode(path):
            return decode_image(read_file(path), mode=ImageReadMode.RGB)
        """,
    "simplejpeg": """
        import simplejpeg
        import torch
        from pathlib import Path
        from torchvision.datasets.folder import default_loader
        from torchvision.transforms.functional import pil_to_tensor

        def decode(path):
            try:
                pixels = simplejpeg.decode_jpeg(Path(path).read_bytes(), colorspace="RGB")
            except ValueError:  # CMYK, or no JPEG
                return pil_to_tensor(default_loader(path))
            return torch.from_numpy(pixels).permute(2, 0, 1)
        """,
}

_GIVE_TENSORS = ("torchvision", "simplejpeg", DECODER)

_CROPS = {
    "imagenet_train": "t.RandomResizedCrop(224), t.RandomHorizontalFlip()",
    "imagenet_train_scaled": "ScaledResizedCrop(224), t.RandomHorizontalFlip()",
    DRAWS_FIRST: "RegionResizedCrop(224), t.RandomHorizontalFlip()",
    "imagenet_eval": "t.Resize(256), t.CenterCrop(224)",
    "to_tensor": "",
}


_FOLDER = dedent("""
    import os
    from torchvision.datasets import ImageFolder
    from torchvision.datasets.folder import IMG_EXTENSIONS

    def has_images(folder):
        walk = os.walk(folder, followlinks=True)
        return any(name.lower().endswith(IMG_EXTENSIONS) for _, _, names in walk for name in names)

    class FolderOfImages(ImageFolder):  # a class may be empty; without class folders, all images have label 0
        def find_classes(self, folder):
            classes = sorted(entry.name for entry in os.scandir(folder) if os.path.isdir(entry))
            labels = {name: label for label, name in enumerate(classes) if has_images(os.path.join(folder, name))}
            return (classes, labels) if labels else (["."], {".": 0})
    """)
"""The code of `FolderOfImages`, which finds the files and labels that `scan_image_folder` finds."""


def folder_code(options: Mapping[str, Any], ranks: int = 1, classes: int | None = None) -> Iterator[str]:
    """Yield the code that creates `dataset` from `root` in each of `ranks` ranks.

    With several `classes`, torchvision's own class finds the files and labels that `scan_image_folder` finds.
    """
    if classes is None or classes < 2:
        yield _FOLDER
        yield from _code_in_folder(options, ranks)
        return
    yield "from torchvision.datasets import ImageFolder"
    for part in _code_in_folder(options, ranks):
        code = re.sub(r"(?<== )(FolderOfImages|Encoded)\(root", r"\1(root, allow_empty=True", part)
        yield code.replace("FolderOfImages", "ImageFolder")


def _code_in_folder(options: Mapping[str, Any], ranks: int) -> Iterator[str]:
    if options.get("format") not in (None, "files"):
        yield f"# Measured with format: {options['format']}; docs/reference/formats.md has code that reads it."
    if options.get("skip_bad"):
        yield "# Measured without the files that cannot be decoded: remove them from root first."
    if options.get("storage"):
        yield f"# Measured with the files in {options['storage']}: pass the bytes of an object to the decoder below."
    yield from [_ENCODED] if options.get("decoder") in _DECODE else _decoding(options)
    if options.get("presize") or options.get("image_cache"):
        yield _source("orientation.py")
    if options.get("presize"):
        yield _presize(int(options["presize"]))
    if options.get("image_cache"):
        yield _source("shared_images.py")
        cache = "SharedImages" if ranks == 1 else "HostImages"
        if ranks > 1:
            yield _source("host_images.py")
        made = f"{cache}(dataset.samples, dataset.loader, room_bytes=room_bytes())"
        yield f"dataset.loader = {made}  # decodes all of them, once"


def _decoding(options: Mapping[str, Any]) -> Iterator[str]:
    """Yield the code of a dataset that decodes and transforms images."""
    decoder, name = _DECODERS.get(str(options.get("decoder")), ""), str(options.get("transform"))
    if options.get("decoder") == "pillow_lazy" and name != "imagenet_train_scaled" and ":" not in name:
        decoder = ""  # a gray image would stay gray
    yield from _regions(options) if options.get("decoder") == DECODER else [dedent(decoder)]
    tensors = options.get("decoder") in _GIVE_TENSORS
    yield from _transform(name, options.get("normalize") != "device", tensors=tensors)
    loads = ", loader=decode" if decoder or options.get("decoder") == DECODER else ""
    yield f"dataset = FolderOfImages(root, transform=transform{loads})"


def _source(file: str) -> str:
    """Source of one of our modules that needs no other, or only a module that precedes it in the program."""
    text = (_DATASETS / file).read_text(encoding="utf-8").partition("from __future__ import annotations")[2]
    text = re.sub("^from loaderbench.*\n", "", text, flags=re.MULTILINE)
    return text.replace("  # type: ignore[misc]", "")


def _regions(options: Mapping[str, Any]) -> Iterator[str]:
    """Yield the code of `decode`, which only opens the file if the transform decodes the region of its crop."""
    yield _source("../per_thread.py")
    yield _source("jpeg_regions.py")
    whole = "def decode(path):\n    return open_jpeg(path)[:, :, :]"
    opens = only_regions(DECODER, str(options.get("transform")), options.get("image_cache"))
    yield "decode = open_jpeg  # the crop decodes" if opens else whole


def _transform(name: str, normalize: bool, *, tensors: bool) -> Iterator[str]:
    """Yield the code of `transform`, a named recipe or the user's callable, for PIL images or uint8 `tensors`."""
    if ":" in name:
        module, _, made = name.partition(":")
        yield _source("own_transform.py")
        yield f"import {module}\n\ntransform = own_transform({module}.{made})"
    elif name == "imagenet_train_v2":
        yield _v2(normalize)
    else:
        if name == "imagenet_train_scaled":
            yield _source("scaled_crop.py")
        if name == DRAWS_FIRST:
            yield _source("region_crop.py")
            tensors = True
        to_float = "t.ConvertImageDtype(torch.float32)" if tensors else "t.ToTensor()"
        to_uint8 = "" if tensors else "t.PILToTensor()"
        scale = f", t.Normalize({MEAN}, {STD})" if name != "to_tensor" else ""
        last = f"{to_float}{scale}" if normalize else to_uint8
        steps = ", ".join(part for part in (_CROPS.get(name, ""), last) if part)
        yield f"import torch\nfrom torchvision import transforms as t\n\ntransform = t.Compose([{steps}])"


def _v2(normalize: bool) -> str:
    last = (
        f"v2.ToDtype(torch.float32, scale=True),\n    v2.Normalize({MEAN}, {STD}),"
        if normalize
        else "v2.ToPureTensor(),"
    )
    lines = ["v2.ToImage(),", "v2.RandomResizedCrop(224, antialias=True),", "v2.RandomHorizontalFlip(),", last]
    inside = "\n".join(f"    {line}" for line in lines)
    return f"import torch\nfrom torchvision.transforms import v2\n\ntransform = v2.Compose([\n{inside}\n])"


def _presize(side: int) -> str:
    return dedent(f"""
        import hashlib
        import os
        from pathlib import Path
        from PIL import Image

        root = Path(dataset.root).absolute()
        small = root.with_name(f"{{root.name}}-{side}-{{hashlib.sha256(str(root).encode()).hexdigest()[:8]}}")

        def smaller(path):  # a copy with a short side of {side} px, written again if the image has changed
            copy = small / Path(path).absolute().relative_to(root)
            if not copy.exists() or copy.stat().st_mtime < os.stat(path).st_mtime:
                image = Image.open(path)
                if min(image.size) <= {side}:
                    return path
                exif = exif_of(orientation_of(image))
                copy.parent.mkdir(parents=True, exist_ok=True)
                size = [round(length * {side} / min(image.size)) for length in image.size]
                part = copy.with_name(f"{{copy.name}}.{{os.getpid()}}.part")  # no copy is ever incomplete
                image = image.convert("RGB").resize(size, Image.Resampling.LANCZOS, reducing_gap=3.0)
                image.save(part, "JPEG", quality=90, exif=exif)
                part.replace(copy)
            return str(copy)

        dataset.samples = [(smaller(path), label) for path, label in dataset.samples]
        """)


_NOT_STANDARDIZED = ("to_tensor",)
"""Recipes whose floats are between 0 and 1."""

_ENCODED = dedent("""
    from torch.utils.data import default_collate
    from torchvision.io import read_file

    class Encoded(FolderOfImages):  # workers read files, the GPU decodes them
        def __getitem__(self, index):
            return self.samples[index]

    def collate(samples):
        return [read_file(path) for path, _ in samples], default_collate([label for _, label in samples])

    dataset = Encoded(root)
    """)


def decoded_on_device(name: str, decoder: str) -> str:
    """The code that decodes batches of files: `decoded` turns files into images with the named recipe."""
    steps = _CROPS["imagenet_train" if name == "imagenet_train_v2" else name]
    before = dedent(f"""

        loader.collate_fn = collate

        # batches are files and labels: decode and crop them on the GPU
        import torch
        from torchvision import transforms as t

        device = "cuda" if torch.cuda.is_available() else "cpu"
        transform = t.Compose([{steps}])
        """)
    after = dedent(f"""
        def decoded(files):  # JPEG only
            return {_as_floats(name, "torch.stack([transform(image) for image in decode(files)])")}
        """)
    return (before + _constants(name) + dedent(_DECODE[decoder]) + after).rstrip("\n")


_DECODE = {
    "device": """
        from torchvision.io import ImageReadMode, decode_jpeg

        stream = torch.cuda.Stream() if device == "cuda" else None

        def decode(files):
            if stream is None:
                return decode_jpeg(files, mode=ImageReadMode.RGB)
            with torch.cuda.stream(stream):  # or torchvision overwrites images that queued work still reads
                images = decode_jpeg(files, mode=ImageReadMode.RGB, device=device)
            torch.cuda.current_stream().wait_stream(stream)
            for image in images:
                image.record_stream(torch.cuda.current_stream())
            return images
        """,
    "dali": """
        import os

        from nvidia.dali import fn, pipeline_def, types
        from nvidia.dali.plugin.pytorch import feed_ndarray

        gpu = torch.cuda.current_device() if device == "cuda" else None
        threads = len(os.sched_getaffinity(0))

        @pipeline_def(batch_size=loader.batch_size, num_threads=threads, device_id=gpu, prefetch_queue_depth=1)
        def pipeline():
            files = fn.external_source(name="files", dtype=types.UINT8, ndim=1)
            where = "cpu" if gpu is None else "mixed"
            return fn.decoders.image(files, device=where, adjust_orientation=False, jpeg_fancy_upsampling=True)

        jpegs = pipeline()

        def decode(files):
            images, = jpegs.run(files=[file.numpy() for file in files])
            stream = None if gpu is None else torch.cuda.current_stream()
            copies = [torch.empty(image.shape(), dtype=torch.uint8, device=device) for image in images]
            for image, copy in zip(images, copies):
                feed_ndarray(image, copy, cuda_stream=stream)  # DALI reuses its memory after the copy
            return [copy.permute(2, 0, 1).contiguous() for copy in copies]
        """,
}
"""The code of `decode`, which takes a list of files, for the decoders that run on the device."""


def _as_floats(name: str, images: str) -> str:
    """The expression that turns uint8 `images` into the floats of the named recipe."""
    return f"{images}.float() / 255" if name in _NOT_STANDARDIZED else f"({images}.float() - mean) / std"


def _constants(name: str) -> str:
    """The code of `mean` and `std`, for a recipe that standardizes images."""
    if name in _NOT_STANDARDIZED:
        return ""
    return dedent(f"""
        mean = torch.tensor({MEAN}, device=device).view(3, 1, 1) * 255
        std = torch.tensor({STD}, device=device).view(3, 1, 1) * 255
        """).lstrip("\n")


def normalized_on_device(name: str) -> str:
    """The code that turns uint8 batches of the named recipe into its floats on the device."""
    before = dedent("""

        # batches are uint8: normalize them on the GPU
        import torch

        device = "cuda" if torch.cuda.is_available() else "cpu"
        """)
    after = dedent(f"""
        def normalized(images):
            return {_as_floats(name, "images.to(device, non_blocking=True)")}
        """)
    return (before + _constants(name) + after).rstrip("\n")
