"""The inputs of every fix: a diagnosed cause, and the findings of the run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from loaderbench.datasets import Target, saved_dataset
from loaderbench.datasets.pixels import CHANGES_PIXELS
from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.limits import have_library_threads, making_takes_the_cpus
from loaderbench.diagnosis.swapping import waits_for_swap
from loaderbench.records import (
    Best,
    Config,
    Configuration,
    Limit,
    Scalar,
    Stage,
    Trial,
    Verdict,
    Verification,
    config_label,
    varying,
)
from loaderbench.remedies.program import python_program
from loaderbench.remedies.target_call import TargetCall

WORTH_LESS = 0.15  # share of a sample's CPU time; changing a smaller stage gains too little


@dataclass(frozen=True)
class Diagnosis:
    """The verdict and facts of one configuration.

    Fields:
        config: All arguments of the configuration, including the fixed ones.
        options: Options of a built-in dataset; `None` for a user's dataset.
        files: Number of files in the dataset; `None` if not all were listed.
        demand: Samples/s that an emulated accelerator takes.
        traits: Traits that were seen in the dataset, by name.
        call: The call of a target that returns an iterable of its own; `None` for other data.
        classes: Number of class folders of the dataset; `None` for other data.
        workers_fit: False if configurations with more workers ran out of memory, open files or processes.
        gpu_named: Whether the suite names the GPU to emulate, so training will have one.
        gpu_kind: torch's name for the kind of GPU in this machine.
        step_on_cpu: Whether the emulated training step takes as long as its CPU time, so CPUs compute it.
    """

    verdict: Verdict
    facts: Facts
    config: Config
    loader: Mapping[str, Any] = field(default_factory=dict)
    accelerator: bool = False
    options: Mapping[str, Any] | None = None
    files: int | None = None
    shared_memory_bytes: int | None = None
    demand: float | None = None
    profile: bool = False
    traits: Mapping[str, str] = field(default_factory=dict)
    call: TargetCall | None = None
    classes: int | None = None
    workers_fit: bool = True
    gpu_named: bool = False
    gpu_kind: str = "cuda"
    step_on_cpu: bool = False

    def named(self, *, stages: Collection[Stage] = (), limits: Collection[Limit] = ()) -> bool:
        """Whether the verdict is input-bound with one of these stages and limits; an empty collection matches all.

        The limit `memory` is page-fault overhead here. For memory that is swapped out, see `is_swapped`.
        """
        stage_fits = not stages or self.verdict.stage in stages
        limit_fits = not limits or (self.verdict.limit in limits and not self.is_swapped)
        return self.verdict.bound == "input" and stage_fits and limit_fits

    @property
    def is_swapped(self) -> bool:
        """Whether the limit is memory that is swapped out. Fixes then lower memory use."""
        return self.verdict.bound == "input" and self.verdict.limit == "memory" and waits_for_swap(self.facts)

    @property
    def workers_persist(self) -> bool:
        """Whether the loader keeps its workers across epochs."""
        return self.facts.workers_persist or self.config.get("persistent_workers") is True

    def cpu_goes_to(self, stage: Stage) -> bool:
        """Whether this stage is the bottleneck of saturated CPUs, or takes at least `WORTH_LESS` of their time.

        CPUs count as saturated if this program or other programs use them up, or if more workers would use more CPU
        time but do not fit. Competing threads also count with several ranks, and in one process whose workers spend
        most of the CPU time on making batches. So they do if neither workers nor library threads can be fewer.
        """
        total = sum(self.facts.cpu_s.values())
        part = self.facts.cpu_s.get(stage, 0.0) / total if total > 0 else 0.0
        named = self.verdict.stage == stage
        limits: set[Limit] = {"cpu", "quota", "neighbors"}
        if not self.workers_fit:
            limits.add("workers")
        fewer_threads = have_library_threads(self.facts) and not self.facts.one_thread_is_no_faster
        fewest = self.facts.workers == 1 and not fewer_threads
        if self.facts.ranks > 1 or fewest or making_takes_the_cpus(self.facts):
            limits.add("oversubscription")
        return self.named(limits=limits) and (named or part >= WORTH_LESS)

    def has_seen(self, trait: str) -> bool:
        """Whether this trait was seen in a user's dataset. Built-in datasets have options instead."""
        return self.options is None and trait in self.traits

    @property
    def own_code(self) -> str:
        """Arguments of the user's own `DataLoader` that a program needs, as code; empty for a built-in dataset."""
        return self.traits.get("own_arguments", "") if self.options is None else ""

    @property
    def own_class(self) -> str:
        """The class of the user's own `DataLoader`, as `module:name`; empty if it is torch's."""
        return self.traits.get("own_class", "") if self.options is None else ""

    def program(self, config: Config) -> str:
        """Code to paste that creates the loader of a configuration."""
        if self.call is not None:
            return self.call.program({**self.loader, **config})
        return python_program(config, self.loader, self.options, self.own_code, self.own_class, classes=self.classes)

    def option(self, name: str) -> Any:
        """The value of a dataset option; `None` if the dataset lacks the option or is the user's."""
        return None if self.options is None else self.options.get(name)

    def has_options(self, *names: str) -> bool:
        """Whether the dataset has all these options."""
        saved = saved_dataset(self.options)
        return saved is not None and saved.axes.keys() >= set(names)


@dataclass(frozen=True)
class Findings:
    """The findings of a run, as the fixes see them.

    Fields:
        trials: Trials of the sweep.
        loader: Fixed arguments of the loader.
        why_no_best: Why the run has no best configuration; empty if it has one.
        diagnosis: Diagnosis of the configuration that the verdict is about.
        later: Diagnoses of the configurations that resulted from applied fixes.
        profile: Whether the run is a profile, which has no second configuration for comparison.
        of_script: Whether `tune` measured a script's loader.
        remedy_trials: Trials of fixes.
        options: Options of a built-in dataset; `None` for a user's dataset.
        demand_of: Returns the samples/s at which the consumer takes a configuration's batches; `None` if the consumer
            does not cap the rate.
        call_of: Returns the call of a target that returns an iterable of its own; `None` for other data.
        classes: Number of class folders of the dataset; `None` for other data.
        highest_memory_limit_bytes: What the memory limit can be raised to; `None` if there is no limit.
    """

    configurations: Sequence[Configuration]
    trials: Sequence[Trial]
    best: Best | None
    baseline: Config
    axes: dict[str, list[Scalar]]
    accelerator: bool
    loader: dict[str, Any] = field(default_factory=dict)
    why_no_best: str = ""
    diagnosis: Diagnosis | None = None
    later: tuple[Diagnosis, ...] = ()
    profile: bool = False
    of_script: bool = False
    verification: Verification | None = None
    remedy_trials: Sequence[Trial] = ()
    options: dict[str, Any] | None = None
    demand_of: Callable[[Config], float | None] = lambda _: None
    call_of: Callable[[Config], TargetCall | None] = lambda _: None
    classes: int | None = None
    highest_memory_limit_bytes: int | None = None

    def label(self, config: Config) -> str:
        """Name a configuration by the axes that vary."""
        return config_label(varying(config, self.axes))

    def find(self, config: Config) -> Configuration | None:
        """The measured configuration, or `None`."""
        return next((found for found in self.configurations if found.config == config and found.samples_per_s), None)

    def values(self, axis: str) -> list[Scalar]:
        """Measured values of an axis, including the baseline's; empty if the name is not an axis."""
        swept = list(self.axes.get(axis, []))
        today = [self.baseline[axis]] if axis in self.baseline and self.baseline[axis] not in swept else []
        return [*swept, *today]

    def alters_pixels(self, change: Config) -> bool:
        """Whether the change sets a dataset option that affects the pixels of a sample."""
        dataset = saved_dataset(self.options)
        return dataset is not None and bool(change.keys() & dataset.axes.keys() & set(CHANGES_PIXELS))

    def altered_data(self, change: Config) -> list[str]:
        """The changed options that choose the data."""
        dataset = saved_dataset(self.options) or Target
        return [name for name in change if name in dataset.data_axes]

    def program(self, config: Config) -> str:
        """Code to paste that creates the loader of a configuration."""
        call = self.call_of(config)
        if call is not None:
            return call.program({**self.loader, **config})
        own = ("", "") if self.diagnosis is None else (self.diagnosis.own_code, self.diagnosis.own_class)
        return python_program(config, self.loader, self.options, *own, classes=self.classes)

    @property
    def diagnoses(self) -> tuple[Diagnosis, ...]:
        """All diagnoses, in the order they were made."""
        return (*(() if self.diagnosis is None else (self.diagnosis,)), *self.later)

    @property
    def how_to_measure_longer(self) -> str:
        """What makes intervals narrower: a flag of `run`, or the budget of `tune`."""
        if self.of_script:
            return "a longer budget"
        return f"--rounds {max(2 * max((trial.round for trial in self.trials), default=0), 6)}"


LARGE_BYTES = 1_000_000  # a JPEG of about four megapixels


def large_images(facts: Facts) -> bool:
    """Whether files are far larger than a crop of a few hundred pixels needs."""
    return (facts.bytes_per_sample or 0.0) >= LARGE_BYTES
