"""The text to paste: a whole program over a folder of images, or a `DataLoader` over the user's `dataset`.

`root` is the user's folder of class folders and `dataset` what they have; everything else stands in the text, with
every argument that was measured.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from textwrap import dedent
from typing import Any

from loaderbench.records import Config, format_scalar
from loaderbench.remedies.folder_code import MEAN, STD, folder_code
from loaderbench.suite.arguments import DATASET_OPTIONS, LOADER_ARGUMENTS, NEEDS_WORKERS, WORKER_OPTIONS


def python_program(config: Mapping[str, Any], loader: Mapping[str, Any], options: Mapping[str, Any] | None) -> str:
    """A program that makes `loader`. `options` are those of a folder of images, `None` for the user's own dataset."""
    arguments = {**loader, **config}
    changed = None if options is None else {**options, **{k: v for k, v in config.items() if k in DATASET_OPTIONS}}
    parts = [*([] if changed is None else folder_code(changed)), *_setup(arguments), _loader(arguments, changed)]
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
        mean = torch.tensor({MEAN}, device=device).view(3, 1, 1) * 255
        std = torch.tensor({STD}, device=device).view(3, 1, 1) * 255

        def normalized(images):
            return (images.to(device, non_blocking=True).float() - mean) / std
        """).rstrip("\n")


def _stated(name: str, value: Any) -> bool:
    """Leave out what stands for "not given" without workers."""
    return name not in NEEDS_WORKERS or value != NEEDS_WORKERS[name]
