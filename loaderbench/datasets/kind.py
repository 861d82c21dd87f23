"""What a kind of dataset is to a suite, to a run and to a trial's process."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from loaderbench.formats import FILES, StoredCopy
from loaderbench.options import Check, Part
from loaderbench.records import DatasetSummary, PixelChange

Samples = tuple[tuple[str, int], ...]
"""Files and their labels."""

Rest = Callable[[Any], Any]
"""Turns a loader's batch into the one that the training step takes."""

Ask = Callable[..., Any]
"""Calls `function(pipe, *arguments)` in a process with torch and returns what it sends; `None` where that ends."""


class PrepareListener(Protocol):
    """Hears what takes a while before anything is measured."""

    def doing(self, what: str) -> None:
        """Something begins."""

    def generating(self, done: int, total: int) -> None:
        """Called as files are generated: `done` of `total`."""

    def writing(self, name: str, done: int, total: int) -> None:
        """Called as files are written: `done` of `total`, as what `name` says. May raise, which ends the writing."""


@dataclass(frozen=True)
class Inputs:
    """The files that all trials read, empty where they are not known, and what to say of the dataset."""

    samples: Samples
    summary: DatasetSummary


@dataclass(frozen=True)
class DatasetOrder:
    """What one trial is to build: its files, and all arguments of its configuration. `folder` is the suite's own.

    `copy` holds the files in the format that the configuration reads; `None` where it reads the files themselves.
    """

    samples: Samples
    arguments: Mapping[str, Any]
    folder: Path
    copy: StoredCopy | None = None


@dataclass(frozen=True)
class Built:
    """What batches or samples come from, the arguments that are left for the loader, and the axes that had effect.

    A rate needs a whole number of `cycle` batches, such as those of an epoch; `None` leaves that to the loader.
    """

    source: Any
    arguments: dict[str, Any]
    taken: frozenset[str] = field(default_factory=frozenset)
    cycle: int | None = None


Kind = TypeVar("Kind", bound="DatasetKind")


class DatasetKind(Part):
    """One value of `dataset.kind`. Its fields are the options under `dataset`; `kind` is a `Literal` of its name.

    Its base is `DatasetOfOptions`, unless its axes are known to the user's code alone.
    """

    kind: str = ""

    axes: ClassVar[Mapping[str, Check]] = {}
    """Options that can be axes of `sweep` too, and what their values have to be."""

    takes_any_axis: ClassVar[bool] = False
    """Whether it accepts axes that no registry knows."""

    texts: ClassVar[tuple[str, ...]] = ()
    """Options that stay text whatever they look like: a folder may be called 2024."""

    change_samples: ClassVar[tuple[str, ...]] = ()
    """Those of `axes` on which `samples_for` depends."""

    smaller_samples: ClassVar[Mapping[str, Any]] = {}
    """Values of `axes` with which a sample takes fewer bytes and holds the same."""

    why_no_files: ClassVar[str] = "unknown which files this dataset reads, so the page cache cannot be set"
    """Why the page cache cannot be set for it; empty where it can."""

    decoding_axes: ClassVar[tuple[str, ...]] = ()
    """Those of `axes` that say how files are decoded; a loader that decodes by itself takes no notice of them."""

    storing_axes: ClassVar[tuple[str, ...]] = ()
    """Those of `axes` that say what files are read from; a loader of one format takes no notice of them."""

    store_axis: ClassVar[str] = ""
    """The axis that names an object store; empty where there is none."""

    frees_stages: ClassVar[bool] = True
    """Whether trials may make its stages free, which replaces functions of the user's while samples are made."""

    def with_axes(self: Kind, config: Mapping[str, Any]) -> Kind:
        """The same with the options that a configuration sets."""
        return self.model_copy(update={name: config[name] for name in self.axes if name in config})

    @abstractmethod
    def describe(self, sweep: Mapping[str, Any], folder: Path) -> str:
        """Say what will be read, importing nothing that the suite names.

        Raises `MissingError` where it, or a package that `sweep` asks for, is not there.
        """

    def prepare(self, sweep: Mapping[str, Any], folder: Path, listener: PrepareListener) -> Inputs:
        """Find or make what the trials read. Raises as `describe` does."""
        why = "not reported by this kind of dataset"
        reasons = dict.fromkeys(("files", "classes", "total_files", "bad_files"), why)
        return Inputs((), DatasetSummary(self.describe(sweep, folder), not_measured=reasons))

    def targets(self, sweep: Mapping[str, Any]) -> list[str]:
        """What has to be importable before anything is measured: names of the form `package.module:name`."""
        return []

    def without_bad(self, inputs: Inputs, sweep: Mapping[str, Any], ask: Ask, listener: PrepareListener) -> Inputs:
        """Leave out samples that cannot be read, where the options ask for it. Raises `MissingError` for no rest."""
        return inputs

    def samples_for(self, samples: Samples, listener: PrepareListener) -> Samples:
        """What trials with these options read in place of `samples`."""
        return samples

    @property
    def stored_as(self) -> str:
        """The format that it reads its files from."""
        return FILES

    @property
    def lists_files(self) -> bool:
        """Whether each sample is a file with a label: a run may copy them into the format that a loader reads."""
        return False

    def why_not_together(self) -> str:
        """Why its options cannot be combined; empty where they can."""
        return ""

    @property
    def store(self) -> str | None:
        """The address of the object store that its files are read from; `None` for local files."""
        return None

    def check_store(self, samples: Samples, folder: Path) -> None:
        """Read one of these files from `store`. Raises `MissingError` where that fails: each trial would."""

    @property
    def lists_images(self) -> bool:
        """Whether its samples are files of images with a named transform: a loader may decode them by itself."""
        return False

    @property
    def is_shared(self) -> bool:
        """Whether what `build` makes is large and can be shared: all ranks of a trial then get the same one."""
        return False

    @abstractmethod
    def build(self, order: DatasetOrder) -> Built:
        """Build it in a trial's process, and take what it uses out of the arguments."""

    def rest_on_device(self, arguments: Mapping[str, Any], device: str) -> Rest | None:
        """What its workers leave to the device, where the training step computes; `None` where they leave nothing.

        `device` is as torch names it. Called in a trial's process.
        """
        return None

    def why_not_on_device(self, arguments: Mapping[str, Any]) -> str:
        """Why its batches cannot be on the device before the step; empty where they can."""
        return ""

    def sample_bytes(self) -> int | None:
        """How large a sample is in memory; `None` where that is not known."""
        return None

    def explain_unreadable(self, samples: Samples) -> str:
        """What can be found out after a trial has met a sample that cannot be read, in a sentence."""
        return ""

    def pixel_changes(self, pairs: Sequence[tuple[DatasetOrder, DatasetOrder]], ask: Ask) -> list[PixelChange]:
        """How much the samples of each pair differ."""
        return [PixelChange(None, "this kind of dataset cannot compare samples")] * len(pairs)

    def code(self, ranks: int = 1) -> Sequence[str] | None:
        """Parts of a program of so many ranks that make `dataset` from `root`; `None` where the user has `dataset`."""
        return None

    def code_after(self) -> str:
        """What a program has to do with batches, after its loader is made."""
        return ""


class DatasetOfOptions(DatasetKind):
    """A kind that its options describe: it has its fields, `axes`, `describe` and `make`."""

    def build(self, order: DatasetOrder) -> Built:
        """Make it from its options and those axes that are its own."""
        rest = {name: value for name, value in order.arguments.items() if name not in self.axes}
        return Built(self.with_axes(order.arguments).make_from(order), rest)

    def make_from(self, order: DatasetOrder) -> Any:
        """Make it; a kind that reads copies in other formats does it here."""
        return self.make(order.samples, order.folder)

    @abstractmethod
    def make(self, samples: Samples, folder: Path) -> Any:
        """Make a `Dataset`, a loader or any iterable of batches, in a trial's process."""
