"""Leaves out the images that a decoder of the suite cannot read, where the suite asks for it, and says which."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace

from loaderbench.errors import MissingError
from loaderbench.records import DatasetSummary
from loaderbench.runner import TrialServer, find_bad_images
from loaderbench.session.inputs import Inputs
from loaderbench.session.listener import Listener
from loaderbench.suite import ImageFolder, Suite

NAMED, _SHOWN = 20, 3  # of the files that were left out: in run.json, and in a sentence


def without_bad_images(inputs: Inputs, suite: Suite, server: TrialServer, listener: Listener) -> Inputs:
    """The same inputs without the files that cannot be decoded; all trials of a run meet the same files.

    Raises `MissingError` where nothing is left.
    """
    dataset = suite.dataset
    if not isinstance(dataset, ImageFolder) or not dataset.skip_bad:
        return inputs
    listener.doing(f"decoding {len(inputs.samples):,} files once, to leave out those that cannot be")
    bad = find_bad_images(server, inputs.samples, sorted(_decoders(dataset, suite)))
    good = tuple(sample for sample in inputs.samples if sample[0] not in bad)
    told = _told(bad, [path for path, _ in inputs.samples])
    if not good:
        raise MissingError(f"dataset.skip_bad: none of {len(bad):,} files can be decoded; {told[0]}")
    reasons = {name: why for name, why in inputs.summary.not_measured.items() if name != "bad_files"}
    summary = replace(inputs.summary, files=len(good), bad_files=len(bad), bad_images=told, not_measured=reasons)
    return replace(inputs, samples=good, summary=summary)


def note_left_out(found: DatasetSummary) -> list[str]:
    """What a reader of the run is told of them; nothing where none was left out."""
    if not found.bad_files:
        return []
    files = f"{found.bad_files:,} file{'' if found.bad_files == 1 else 's'}"
    more = f"; and {found.bad_files - _SHOWN:,} more" if found.bad_files > _SHOWN else ""
    return [f"left out {files} that cannot be decoded: {'; '.join(found.bad_images[:_SHOWN])}{more}"]


def _decoders(dataset: ImageFolder, suite: Suite) -> set[str]:
    """Those of the suite; what Pillow opens only is decoded by it later."""
    axis = suite.sweep.get("decoder", dataset.decoder)
    named = set(axis if isinstance(axis, list) else [axis])
    return {"pillow" if name == "pillow_lazy" else name for name in named}


def _told(bad: Mapping[str, str], paths: Iterable[str]) -> tuple[str, ...]:
    """`class/name.jpg: Error: what`: the names below the folder, and not where that lies."""
    root = os.path.commonpath({os.path.dirname(path) for path in paths})  # noqa: PTH120 - of a million files
    rows = sorted(bad.items())[:NAMED]
    return tuple(f"{os.path.relpath(path, root)}: {why.replace(path, '...')}" for path, why in rows)
