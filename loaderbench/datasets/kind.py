"""The interface of a kind of dataset to a suite, a run and a trial's process."""

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
"""Converts a batch of the loader into the batch that the training step takes."""

Ask = Callable[..., Any]
"""Calls `function(pipe, *arguments)` in a child process with torch and returns its answer; `None` if the child dies."""


class PrepareListener(Protocol):
    """Receives the progress of slow preparations before the measurement."""

    def doing(self, what: str) -> None:
        """A step begins."""

    def generating(self, done: int, total: int) -> None:
        """Called while files are generated: `done` of `total`."""

    def writing(self, name: str, done: int, total: int) -> None:
        """Called while files are written: `done` of `total`, described by `name`. May raise, which ends the writing."""


@dataclass(frozen=True)
class Inputs:
    """The files of one choice of data (empty if unknown), and a summary of the dataset."""

    samples: Samples
    summary: DatasetSummary


@dataclass(frozen=True)
class DatasetOrder:
    """What one trial builds: its files, and all arguments of its configuration. `folder` is the suite's folder.

    `copy` holds the files in the format that the configuration reads; `None` if it reads the files themselves.
    """

    samples: Samples
    arguments: Mapping[str, Any]
    folder: Path
    copy: StoredCopy | None = None


@dataclass(frozen=True)
class Built:
    """The source of batches or samples, the remaining arguments for the loader, and the axes that took effect.

    A rate is measured over a multiple of `cycle` batches, such as the batches of an epoch; `None` leaves the cycle to
    the loader.
    """

    source: Any
    arguments: dict[str, Any]
    taken: frozenset[str] = field(default_factory=frozenset)
    cycle: int | None = None


Kind = TypeVar("Kind", bound="DatasetKind")


class DatasetKind(Part):
    """A value of `dataset.kind`. The fields are the options under `dataset`; `kind` is a `Literal` of the kind's name.

    Derive a kind from `DatasetOfOptions` unless only the user's code knows its axes.
    """

    kind: str = ""

    axes: ClassVar[Mapping[str, Check]] = {}
    """Options that can also be axes of `sweep`, with the check of their values."""

    data_axes: ClassVar[Mapping[str, Check]] = {}
    """Options that choose the data and can also be axes of `sweep`, with the check of their values."""

    needed: ClassVar[tuple[str, ...]] = ()
    """Options that have no default: the suite sets them under `dataset`, or as axes."""

    takes_any_axis: ClassVar[bool] = False
    """Whether the kind accepts axes that no registry knows."""

    texts: ClassVar[tuple[str, ...]] = ()
    """Options that always stay text: a folder can be named 2024."""

    change_samples: ClassVar[tuple[str, ...]] = ()
    """Axes on which `samples_for` depends."""

    smaller_samples: ClassVar[Mapping[str, Any]] = {}
    """Values of `axes` that make a sample smaller in bytes without changing its content."""

    why_no_files: ClassVar[str] = "unknown which files this dataset reads, so the page cache cannot be set"
    """Why the page cache cannot be set for this kind; empty if it can."""

    decoding_axes: ClassVar[tuple[str, ...]] = ()
    """Axes that say how files are decoded; a loader that decodes by itself ignores them."""

    storing_axes: ClassVar[tuple[str, ...]] = ()
    """Axes that say what files are read from; a loader of one format ignores them."""

    store_axis: ClassVar[str] = ""
    """The axis that names an object store; empty if there is none."""

    is_of_script: ClassVar[bool] = False
    """Whether it is the loader of a running script, whose step sets the demand and whose functions are not replaced."""

    amount_axes: ClassVar[tuple[str, ...]] = ()
    """Those of `data_axes` that say how much of the same data is read: no setting to choose by its rate."""

    @classmethod
    def option_axes(cls) -> dict[str, Check]:
        """All options that can be axes, with the check of their values."""
        return {**cls.axes, **cls.data_axes}

    def with_axes(self: Kind, config: Mapping[str, Any]) -> Kind:
        """A copy of the dataset with the options that a configuration sets."""
        return self.model_copy(update={name: config[name] for name in self.option_axes() if name in config})

    @property
    def choice_of_data(self) -> tuple[Any, ...]:
        """The values of `data_axes`, by which a run tells its choices of files apart."""
        return tuple(getattr(self, name) for name in self.data_axes)

    @abstractmethod
    def describe(self, sweep: Mapping[str, Any], folder: Path) -> str:
        """Say what will be read, without importing anything that the suite names.

        `sweep` has all values of each option in the suite.

        Raises `MissingError` if the data, or a package that `sweep` needs, is missing.
        """

    def prepare(self, sweep: Mapping[str, Any], folder: Path, listener: PrepareListener) -> Inputs:
        """Find or create the files that the trials read. Raises as `describe` does."""
        why = "not reported by this kind of dataset"
        reasons = dict.fromkeys(("files", "classes", "total_files", "bad_files", "root"), why)
        return Inputs((), DatasetSummary(self.describe(sweep, folder), not_measured=reasons))

    def targets(self, sweep: Mapping[str, Any]) -> list[str]:
        """Names of the form `package.module:name` that must be importable before the measurement."""
        return []

    def without_bad(self, inputs: Inputs, sweep: Mapping[str, Any], ask: Ask, listener: PrepareListener) -> Inputs:
        """Exclude samples that cannot be read, if the options ask for it. Raises `MissingError` if none is left."""
        return inputs

    def samples_for(self, samples: Samples, listener: PrepareListener) -> Samples:
        """The samples that trials with these options read in place of `samples`."""
        return samples

    @property
    def stored_as(self) -> str:
        """The format in which the dataset reads its files."""
        return FILES

    @property
    def lists_files(self) -> bool:
        """Whether each sample is a file with a label, which a run can copy into a loader's format."""
        return False

    def why_not_together(self) -> str:
        """Why these options cannot be combined; empty if they can."""
        return ""

    @property
    def store(self) -> str | None:
        """The address of the object store that holds the files; `None` for local files."""
        return None

    def check_store(self, samples: Samples, folder: Path) -> None:
        """Read one of these files from `store`. Raises `MissingError` on failure, since every trial would fail."""

    @property
    def lists_images(self) -> bool:
        """Whether samples are image files with a named transform, which a loader can decode without the dataset."""
        return False

    @property
    def is_shared(self) -> bool:
        """Whether the dataset is large and can be shared, in which case all ranks of a trial get the same one."""
        return False

    @abstractmethod
    def build(self, order: DatasetOrder) -> Built:
        """Build the dataset in a trial's process, and remove the arguments it uses."""

    def keywords(self, order: DatasetOrder) -> frozenset[str]:
        """The keyword arguments of the user's code that returns batches; empty if there is none."""
        return frozenset()

    def rest_on_device(self, arguments: Mapping[str, Any], device: str) -> Rest | None:
        """The processing that workers leave to the device of the training step; `None` if there is none.

        `device` is a torch device name. Called in a trial's process.
        """
        return None

    def why_not_on_device(self, arguments: Mapping[str, Any]) -> str:
        """Why batches cannot be on the device before the step; empty if they can."""
        return ""

    def sample_bytes(self) -> int | None:
        """Size of a sample in memory; `None` if unknown."""
        return None

    def hint_unreadable(self, samples: Samples, message: str, hint: str) -> str:
        """Extend the hint of a failed trial with the reason why its sample could not be read."""
        return hint

    def pixel_changes(self, pairs: Sequence[tuple[DatasetOrder, DatasetOrder]], ask: Ask) -> list[PixelChange]:
        """How much the samples of each pair of configurations differ."""
        return [PixelChange(None, "this kind of dataset cannot compare samples")] * len(pairs)

    def code(self, ranks: int = 1, classes: int | None = None) -> Sequence[str] | None:
        """Code that creates `dataset` from `root` in a program of `ranks` ranks; `None` if the user has `dataset`.

        `classes` is the number of class folders, if known.
        """
        return None

    def code_after(self) -> str:
        """Code that processes batches, placed after the loader is created."""
        return ""


class DatasetOfOptions(DatasetKind):
    """A kind that is fully described by its options; subclasses define fields, `axes`, `describe` and `make`."""

    def build(self, order: DatasetOrder) -> Built:
        """Create the dataset from its options and from the axes that belong to it."""
        own = self.option_axes()
        rest = {name: value for name, value in order.arguments.items() if name not in own}
        return Built(self.with_axes(order.arguments).make_from(order), rest)

    def make_from(self, order: DatasetOrder) -> Any:
        """Create the dataset. Kinds that read copies in other formats override this method."""
        return self.make(order.samples, order.folder)

    @abstractmethod
    def make(self, samples: Samples, folder: Path) -> Any:
        """Create a `Dataset`, a loader or any iterable of batches, in a trial's process."""
