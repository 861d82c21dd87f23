"""Leaves out the images that a decoder of the suite cannot read, where the suite asks for it, and says which."""

from __future__ import annotations

import os
from collections.abc import Iterable
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
    if not good:
        raise MissingError(f"dataset.skip_bad: none of {len(bad):,} files can be decoded; {_told(bad.items())[0]}")
    reasons = {name: why for name, why in inputs.summary.not_measured.items() if name != "bad_files"}
    summary = replace(
        inputs.summary, files=len(good), bad_files=len(bad), bad_images=_told(bad.items()), not_measured=reasons
    )
    return replace(inputs, samples=good, summary=summary)


def note_left_out(found: DatasetSummary) -> list[str]:
    """What a reader of the run is told of them; nothing where none was left out."""
    if not found.bad_files:
        return []
    many = (
        "1 file that cannot be decoded was"
        if found.bad_files == 1
        else f"{found.bad_files:,} files that cannot be decoded were"
    )
    more = f"; and {found.bad_files - _SHOWN:,} more" if found.bad_files > _SHOWN else ""
    return [f"{many} left out: {'; '.join(found.bad_images[:_SHOWN])}{more}"]


def _decoders(dataset: ImageFolder, suite: Suite) -> set[str]:
    axis = suite.sweep.get("decoder", dataset.decoder)
    return set(axis if isinstance(axis, list) else [axis])


def _told(bad: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """`class/name.jpg: Error: what`: the names below the folder, and not where that lies."""
    rows = sorted(bad)
    root = os.path.commonpath([os.path.dirname(path) for path, _ in rows]) if rows else ""  # noqa: PTH120
    return tuple(f"{os.path.relpath(path, root)}: {why.replace(path, '...')}" for path, why in rows[:NAMED])
