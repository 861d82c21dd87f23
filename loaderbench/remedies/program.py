"""Code to paste: a complete program for a folder of images, or a `DataLoader` for the user's `dataset`.

The user supplies `root`, a folder of class folders, or `dataset`. The code contains everything else, with every
measured argument.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from textwrap import indent
from typing import Any

from loaderbench.datasets import DatasetKind, Target, saved_dataset
from loaderbench.datasets.image_folder import ON_DEVICE
from loaderbench.datasets.nvimagecodec import DRAWS_FIRST
from loaderbench.loaders import AXIS, DEFAULT_BACKEND, LOADER_BACKENDS, Code, LoaderBackend, backend_of, own_arguments
from loaderbench.ranks import RANKS, rank_count
from loaderbench.records import Config, as_yaml

_NOT_WITH_BATCH_SAMPLER = ("batch_size", "shuffle", "drop_last")


def python_program(
    config: Mapping[str, Any],
    loader: Mapping[str, Any],
    options: Mapping[str, Any] | None,
    own_code: str = "",
    own_class: str = "",
    *,
    classes: int | None = None,
) -> str:
    """Return a program that creates `loader`.

    `options` are the options of a built-in dataset; `None` if the user supplies `dataset`. `own_code` are arguments of
    the user's loader, such as `shuffle=True, collate_fn=pad`. The program keeps those that are in neither `config` nor
    `loader`. `own_class` is the class of that loader, as `module:name`; empty if it is torch's. `classes` is the number
    of class folders, if known.
    """
    own_pairs = (pair.partition("=") for pair in own_code.split(", "))
    kept = {name: Code(value) for name, _, value in own_pairs if value and name not in {**loader, **config}}
    arguments, saved = {**loader, **config, **kept}, saved_dataset(options)
    if "batch_sampler" in kept:
        arguments = {name: value for name, value in arguments.items() if name not in _NOT_WITH_BATCH_SAMPLER}
    ranks = rank_count(arguments)
    arguments.pop(RANKS, None)
    backend = backend_of(arguments)
    dataset = None if saved is None else saved.with_axes(config)
    comments = []
    if dataset is not None and dataset.store is not None and backend.reads_stores:
        comments.append(f"# measured with the shards in {dataset.store}/{backend.format}; these are local ones")
        dataset = dataset.with_axes({dataset.store_axis: None})
    if dataset is not None:
        dataset, why = _with_usable_decoder(dataset, backend)
        comments += why
        arguments = {**_recipe(dataset), **arguments} if backend.decodes else arguments
    dataset_code = None if dataset is None else dataset.code(ranks or 1, classes)
    of_dataset = () if dataset is None else dataset.axes
    others = own_arguments(arguments, (backend, LOADER_BACKENDS[DEFAULT_BACKEND])).items()
    own = {name: value for name, value in others if name not in {*backend.axes, *of_dataset, *kept}}
    comments += [
        f"# the dataset was made with {name}={value!r}"
        for name, value in own.items()
        if not (_is_loader_argument(name) and (value is None or dataset is not None))
    ]
    if kept and not (backend.is_torchs or (backend.keeps_own_code and "worker_init_fn" not in kept)):
        comments.append(f"# the measured loader has {own_code}")
    if ranks is not None and ranks > 1:
        comments.append(f"# in each of {ranks} ranks; {_rank_note(backend)}")
    *setup, last = backend.code(arguments, comments)
    if own_class and backend.is_torchs:
        last = _of_class(last, own_class)
    after = "" if dataset is None else dataset.code_after()
    return _imports_first(
        "\n\n".join(part.strip("\n") for part in [*(dataset_code or ()), *setup, last + after] if part.strip())
    )


def _with_usable_decoder(dataset: DatasetKind, backend: LoaderBackend) -> tuple[DatasetKind, list[str]]:
    """The dataset with a decoder that the loader's program can use, and a comment if another decoder was measured."""
    decoder = getattr(dataset, "decoder", None)
    if decoder is None or backend.decodes:
        return dataset, []
    if backend.format and decoder != "pillow":
        usable = {"decoder": "pillow"}
        if getattr(dataset, "transform", None) == DRAWS_FIRST:
            usable["transform"] = "imagenet_train"
    elif not backend.is_torchs and decoder in ON_DEVICE:
        usable = {"decoder": "torchvision"}
    else:
        return dataset, []
    return dataset.with_axes(usable), [
        f"# measured with decoder={decoder}; this program decodes with {usable['decoder']}"
    ]


def _of_class(code: str, own_class: str) -> str:
    """The code of a `DataLoader` with the class of the user's loader."""
    module, _, name = own_class.partition(":")
    code = code.replace("from torch.utils.data import DataLoader\n", f"from {module} import {name.partition('.')[0]}\n")
    return code.replace("loader = DataLoader(", f"loader = {name}(  # your class: set these where you create it")


def _recipe(dataset: DatasetKind) -> dict[str, Any]:
    """Dataset options that a loader with built-in decoding applies in place of the dataset."""
    return {name: getattr(dataset, name) for name in ("transform", "normalize") if hasattr(dataset, name)}


def _rank_note(backend: LoaderBackend) -> str:
    """How each of several ranks gets its part of the data, for a comment."""
    if backend.is_torchs:
        return "they share the shards" if backend.format else "give it sampler=DistributedSampler(dataset), not shuffle"
    return f"first give each its own {'shards' if backend.format else 'part of the dataset'}"


def _imports_first(text: str) -> str:
    """Move all imports to the top, without duplicates."""
    lines = text.splitlines()
    imports = sorted({line for line in lines if line.startswith(("import ", "from "))}, key=_place_of_import)
    rest = "\n".join(line for line in lines if line not in imports)
    return "\n".join(imports) + "\n\n" + re.sub(r"\n{3,}", "\n\n", rest.strip("\n")) + "\n"


def _place_of_import(line: str) -> tuple[bool, bool, str]:
    """Sort key that puts TensorFlow last: importing Triton after TensorFlow, as torch does, ends the process."""
    return "tensorflow" in line.partition("#")[0], line.startswith("from "), line


def yaml_change(
    change: Config, config: Mapping[str, Any], loader: Mapping[str, Any], options: Mapping[str, Any] | None
) -> str:
    """The change as lines of a suite. `config` is the changed configuration, `loader` the fixed arguments.

    `options` are as for `python_program`.
    """
    own = backend_of({**loader, **config}).axes
    dataset = saved_dataset(options) or Target
    lines: dict[str, list[str]] = {"loader": [], "dataset": [], "args": [], "sweep": []}
    for name, value in change.items():
        section = _section(name, own, dataset.option_axes())
        if not (section == "args" and value is None and _is_loader_argument(name)):
            lines[section].append(f"{name}: {as_yaml(value)}")
    if of_target := lines.pop("args"):
        lines["dataset"] += ["args:", *(f"  {line}" for line in of_target)]
    return "\n".join(f"{name}:\n" + indent("\n".join(found), "  ") for name, found in lines.items() if found)


def _section(name: str, own: Collection[str], options: Collection[str]) -> str:
    """The suite section for an axis: of the loader (`own`), of the dataset (`options`), or else a target's argument."""
    if name == RANKS:
        return "sweep"
    if name == AXIS or name in own:
        return "loader"
    return "dataset" if name in options else "args"


def _is_loader_argument(name: str) -> bool:
    """Whether any loader takes this argument. It is null in a configuration whose loader does not."""
    return any(name in backend.axes for backend in LOADER_BACKENDS.values())
