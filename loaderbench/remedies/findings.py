"""What the fixes are asked about: a diagnosed cause, and the run as a whole."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from loaderbench.datasets import saved_dataset
from loaderbench.datasets.pixels import CHANGES_PIXELS
from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.limits import making_takes_the_cpus
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

WORTH_LESS = 0.15  # of a sample's CPU time; changing a smaller stage gains too little


@dataclass(frozen=True)
class Diagnosis:
    """What was found for one configuration. `config` are all its arguments, the fixed ones among them.

    `options` are the dataset's own, `None` of a dataset of the user's; `files` how many it has, `None` where not all
    were listed. `demand` is what an emulated accelerator takes. `traits` are what was seen in the dataset itself, by
    name. `workers_fit` is false where configurations with more workers ran out of memory, open files or processes.
    `gpu_named`: the suite names the GPU to emulate, so training will have one. `gpu_kind` is torch's name for the GPUs
    of this machine. `step_on_cpu`: a training step as long as its CPU time was emulated, so the CPUs compute it.
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
    workers_fit: bool = True
    gpu_named: bool = False
    gpu_kind: str = "cuda"
    step_on_cpu: bool = False

    def named(self, *, stages: Collection[Stage] = (), limits: Collection[Limit] = ()) -> bool:
        """Whether the cause is of these stages and limits; all, where none are given."""
        stage_fits = not stages or self.verdict.stage in stages
        return self.verdict.bound == "input" and stage_fits and (not limits or self.verdict.limit in limits)

    def cpu_goes_to(self, stage: Stage) -> bool:
        """Whether this stage is the bottleneck of CPUs, or takes at least `WORTH_LESS` of their time.

        That is where the CPUs in use are saturated, by this program or by others too, or where more workers would use
        more of them but do not fit. Ranks also saturate them where their threads compete, and so do the workers of one
        process where most of that is making batches.
        """
        whole = sum(self.facts.cpu_s.values())
        part = self.facts.cpu_s.get(stage, 0.0) / whole if whole > 0 else 0.0
        named = self.verdict.stage == stage
        limits: set[Limit] = {"cpu", "quota", "neighbors"}
        if not self.workers_fit:
            limits.add("workers")
        if self.facts.ranks > 1 or making_takes_the_cpus(self.facts):
            limits.add("oversubscription")
        return self.named(limits=limits) and (named or part >= WORTH_LESS)

    def has_seen(self, trait: str) -> bool:
        """Whether a dataset of the user's own was seen to have it; others have options."""
        return self.options is None and trait in self.traits

    def option(self, name: str) -> Any:
        """An option of the dataset; `None` where it has none of the name, or is the user's own."""
        return None if self.options is None else self.options.get(name)

    def has_options(self, *names: str) -> bool:
        """Whether the dataset has these options."""
        saved = saved_dataset(self.options)
        return saved is not None and saved.axes.keys() >= set(names)


@dataclass(frozen=True)
class Findings:
    """A run as the remedies see it. `loader` are the fixed arguments; `why_no_best` is empty where there is a best.

    `trials` are those of the sweep, `remedy_trials` those of remedies.
    `diagnosis` is of the configuration that the verdict is about, `later` are those of what the remedies made of it. A
    `profile` has no other to compare it with. `options` are the dataset's own. `demand_of` gives the samples/s that a
    consumer takes a configuration's batches at; `None` of one that does not cap the rate.
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
    verification: Verification | None = None
    remedy_trials: Sequence[Trial] = ()
    options: dict[str, Any] | None = None
    demand_of: Callable[[Config], float | None] = lambda _: None

    def label(self, config: Config) -> str:
        """Write a configuration by the axes that vary."""
        return config_label(varying(config, self.axes))

    def find(self, config: Config) -> Configuration | None:
        """The configuration as it was measured, or `None`."""
        return next((found for found in self.configurations if found.config == config and found.samples_per_s), None)

    def values(self, axis: str) -> list[Scalar]:
        """The values of an axis that were measured, the baseline's among them; none where it is no axis."""
        swept = list(self.axes.get(axis, []))
        today = [self.baseline[axis]] if axis in self.baseline and self.baseline[axis] not in swept else []
        return [*swept, *today]

    def alters_pixels(self, change: Config) -> bool:
        """Whether it changes an option of the dataset on which the pixels of a sample depend."""
        dataset = saved_dataset(self.options)
        return dataset is not None and bool(change.keys() & dataset.axes.keys() & set(CHANGES_PIXELS))

    @property
    def diagnoses(self) -> tuple[Diagnosis, ...]:
        """All causes that were found, in the order they were met."""
        return (*(() if self.diagnosis is None else (self.diagnosis,)), *self.later)

    @property
    def rounds(self) -> int:
        """How many rounds were begun."""
        return max((trial.round for trial in self.trials), default=0)


LARGE_BYTES = 1_000_000  # a JPEG of about four megapixels


def large_images(facts: Facts) -> bool:
    """Whether files are far larger than what a crop of a few hundred pixels needs."""
    return (facts.bytes_per_sample or 0.0) >= LARGE_BYTES
