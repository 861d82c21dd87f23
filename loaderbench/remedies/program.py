"""The text to paste: a whole program over a folder of images, or a `DataLoader` over the user's `dataset`.

`root` is the user's folder of class folders and `dataset` what they have; everything else stands in the text, with
every argument that was measured.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

from loaderbench.records import Config, format_scalar
from loaderbench.suite.arguments import DATASET_OPTIONS, LOADER_ARGUMENTS, NEEDS_WORKERS, WORKER_OPTIONS

_DATASETS = Path(__file__).parents[1] / "datasets"
_MEAN, _STD = "[0.485, 0.456, 0.406]", "[0.229, 0.224, 0.225]"

_DECODERS = {
    "pillow": "",
    "pillow_draft": """
        from PIL import Image

        def decode(path):
            with Image.open(path) as image:
                image.draft("RGB", (256, 256))  # libjpeg scales while it decodes, to no less than this
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
        import simplejpeg, torch
        from pathlib import Path

        def decode(path):  # JPEG only
            pixels = simplejpeg.decode_jpeg(Path(path).read_bytes(), colorspace="RGB")
            return torch.from_numpy(pixels).permute(2, 0, 1)
        """,
}

_GIVE_TENSORS = ("torchvision", "simplejpeg")

_CROPS = {
    "imagenet_train": "t.RandomResizedCrop(224), t.RandomHorizontalFlip()",
    "imagenet_train_scaled": "ScaledResizedCrop(224), t.RandomHorizontalFlip()",
    "imagenet_eval": "t.Resize(256), t.CenterCrop(224)",
    "to_tensor": "",
}


def python_program(config: Mapping[str, Any], loader: Mapping[str, Any], options: Mapping[str, Any] | None) -> str:
    """A program that makes `loader`. `options` are those of a folder of images, `None` for the user's own dataset."""
    arguments = {**loader, **config}
    changed = None if options is None else {**options, **{k: v for k, v in config.items() if k in DATASET_OPTIONS}}
    parts = [*([] if changed is None else _folder(changed)), *_setup(arguments), _loader(arguments, changed)]
    return _imports_first("\n\n".join(part.strip("\n") for part in parts if part.strip()))


def _imports_first(text: str) -> str:
    """All imports at the top, each once."""
    lines = text.splitlines()
    imports = sorted({line for line in lines if line.startswith(("import ", "from "))}, key=_place_of_import)
    rest = "\n".join(line for line in lines if line not in imports)
    return "\n".join(imports) + "\n\n" + re.sub(r"\n{3,}", "\n\n", rest.strip("\n")) + "\n"


def _place_of_import(line: str) -> tuple[bool, str]:
    return line.startswith("from "), line


def yaml_change(change: Config) -> str:
    """The same as lines of a suite."""
    inside = [f"  {name}: {format_scalar(value)}" for name, value in change.items() if name not in DATASET_OPTIONS]
    outside = [f"  {name}: {format_scalar(value)}" for name, value in change.items() if name in DATASET_OPTIONS]
    return "\n".join([*(["loader:", *inside] if inside else []), *(["dataset:", *outside] if outside else [])])


def _folder(options: Mapping[str, Any]) -> Iterator[str]:
    """`dataset`, from `root`."""
    decoder = _DECODERS.get(str(options.get("decoder")), "")
    yield "from torchvision.datasets import ImageFolder"
    if options.get("presize"):
        yield _presize(int(options["presize"]))
    yield dedent(decoder)
    tensors = options.get("decoder") in _GIVE_TENSORS
    yield from _transform(str(options.get("transform")), options.get("normalize") != "device", tensors=tensors)
    loads = ", loader=decode" if decoder else ""
    yield f"dataset = ImageFolder(root, transform=transform{loads})"
    if options.get("image_cache"):
        yield _source("shared_images.py")
        made = "SharedImages(dataset.samples, dataset.loader, room_bytes=room_bytes())"
        yield f"dataset.loader = {made}  # decodes all of them, once"


def _source(file: str) -> str:
    """A module of ours that stands on its own."""
    text = (_DATASETS / file).read_text(encoding="utf-8").partition("from __future__ import annotations")[2]
    return text.replace("  # type: ignore[misc]", "")


def _transform(name: str, normalize: bool, *, tensors: bool) -> Iterator[str]:
    """`transform`, a recipe by its name or the user's own; of PIL images, or of `tensors` of uint8."""
    if ":" in name:
        module, _, made = name.partition(":")
        yield f"from {module} import {made} as transform"
    elif name == "imagenet_train_v2":
        yield _v2(normalize)
    else:
        if name == "imagenet_train_scaled":
            yield _source("scaled_crop.py")
        to_float = "t.ConvertImageDtype(torch.float32)" if tensors else "t.ToTensor()"
        to_uint8 = "" if tensors else "t.PILToTensor()"
        last = f"{to_float}, t.Normalize({_MEAN}, {_STD})" if normalize else to_uint8
        steps = ", ".join(part for part in (_CROPS.get(name, ""), last) if part)
        yield f"import torch\nfrom torchvision import transforms as t\n\ntransform = t.Compose([{steps}])"


def _v2(normalize: bool) -> str:
    last = (
        f"v2.ToDtype(torch.float32, scale=True),\n    v2.Normalize({_MEAN}, {_STD}),"
        if normalize
        else "v2.ToPureTensor(),"
    )
    lines = ["v2.ToImage(),", "v2.RandomResizedCrop(224, antialias=True),", "v2.RandomHorizontalFlip(),", last]
    inside = "\n".join(f"    {line}" for line in lines)
    return f"import torch\nfrom torchvision.transforms import v2\n\ntransform = v2.Compose([\n{inside}\n])"


def _presize(side: int) -> str:
    return dedent(f"""
        from pathlib import Path
        from PIL import Image

        small = Path(f"{{root}}-{side}")
        for path in Path(root).rglob("*.*"):  # once: copies whose shorter side has {side} pixels
            copy = small / path.relative_to(root)
            if not copy.exists():
                copy.parent.mkdir(parents=True, exist_ok=True)
                image = Image.open(path).convert("RGB")
                scale = min(1, {side} / min(image.size))
                size = [round(length * scale) for length in image.size]
                image.resize(size, Image.Resampling.LANCZOS, reducing_gap=3.0).save(copy, "JPEG", quality=90)
        root = small
        """)


def _setup(arguments: Mapping[str, Any]) -> Iterator[str]:
    """`set_up`, what each worker does first."""
    lines = []
    if threads := arguments.get("worker_threads"):
        lines += ["threadpool_limits(THREADS)  # of BLAS and OpenMP", "torch.set_num_threads(THREADS)",
                  "# with OpenCV also: cv2.setNumThreads(0)"]  # fmt: skip
    if arguments.get("worker_affinity") == "all":
        lines.append("os.sched_setaffinity(0, range(os.cpu_count()))  # a library had narrowed it")
    if arguments.get("keep_memory"):
        lines += ["Image.core.set_blocks_max(64)  # or PILLOW_BLOCKS_MAX=64 in the environment",
                  "ctypes.CDLL(None).mallopt(-3, 1 << 30)  # glibc's M_MMAP_THRESHOLD",
                  "ctypes.CDLL(None).mallopt(-1, 1 << 30)  # glibc's M_TRIM_THRESHOLD"]  # fmt: skip
    if lines:
        head = "import ctypes\nimport os\n\nimport torch\nfrom PIL import Image\n"
        limit = f"from threadpoolctl import threadpool_limits\n\nTHREADS = {threads}\n" if threads else ""
        body = "\n".join(f"    {line}" for line in lines)
        yield f"{head}{limit}\n\ndef set_up(worker_id):\n{body}"


def _loader(arguments: Mapping[str, Any], options: Mapping[str, Any] | None) -> str:
    inside = {name: value for name, value in arguments.items() if name in LOADER_ARGUMENTS and _stated(name, value)}
    known = {*LOADER_ARGUMENTS, *WORKER_OPTIONS, *DATASET_OPTIONS}
    own = {name: value for name, value in arguments.items() if name not in known}
    comments = [f"# the dataset was made with {name}={value!r}" for name, value in own.items()]
    lines = [f"    {name}={value!r}," for name, value in inside.items()]
    if list(_setup(arguments)) and arguments.get("num_workers"):
        lines.append("    worker_init_fn=set_up,")
    made = [
        "from torch.utils.data import DataLoader",
        "",
        *comments,
        "loader = DataLoader(",
        "    dataset,",
        *lines,
        ")",
    ]
    device = _on_device() if options is not None and options.get("normalize") == "device" else ""
    return "\n".join(made) + device


def _on_device() -> str:
    return dedent(f"""

        # batches are uint8: normalise them where the model is
        import torch

        device = "cuda" if torch.cuda.is_available() else "cpu"
        mean = torch.tensor({_MEAN}, device=device).view(3, 1, 1) * 255
        std = torch.tensor({_STD}, device=device).view(3, 1, 1) * 255

        def normalized(images):
            return (images.to(device, non_blocking=True).float() - mean) / std
        """).rstrip("\n")


def _stated(name: str, value: Any) -> bool:
    """Leave out what stands for "not given" without workers."""
    return name not in NEEDS_WORKERS or value != NEEDS_WORKERS[name]
