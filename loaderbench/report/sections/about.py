"""About the run: its machine and GPUs, its method, and a glossary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from loaderbench.diagnosis.copy_bandwidth import PcieLink
from loaderbench.glossary import of_report
from loaderbench.records import Environment, Gpu, GpuUse, RunRecord, Trial
from loaderbench.records.words import count
from loaderbench.report import head, numbers, words
from loaderbench.report.model import Details, Fact, Facts, Paragraph, Section, Text
from loaderbench.report.view import View, has_data_wait

_PROCESSES = "Each trial ran in its own process; monitors ran outside it."
_OF_ROUNDS = (
    "Intervals: 95%, Student\u2019s t over rounds, never over the batches of one trial. Configs within 5% "
    "of the fastest, with no significant difference, are ties. The cheapest tie is best. Intervals of gains "
    "also cover the same comparison at another time. They are prediction intervals for three other rounds, wider "
    "the more the machine\u2019s speed varied."
)
_OF_PAIRS = (
    "Intervals: Student\u2019s t over pairs, never over the batches of one trial. They have simultaneous 95% coverage "
    "over all interim checks and configs."
)


def section(view: View) -> Section:
    """The folded section at the end of the report."""
    terms = tuple(Fact(term.name, Text(term.meaning)) for term in of_report("profile" if view.profile else "sweep"))
    folds = (
        Details("Environment", (Facts(_environment(view)),)),
        Details("Method", tuple(Paragraph(Text(text)) for text in _method(view))),
        Details("Glossary", (Facts(terms),)),
    )
    return Section(id="about", title="About this run", blocks=folds)


def _method(view: View) -> tuple[str, ...]:
    if view.profile is None:
        return _of_sweep(view.run)
    return _of_attached(view.profile) if view.is_attached else _of_profile(view.profile)


def _environment(view: View) -> tuple[Fact, ...]:
    """All known facts about the machine and its package versions."""
    run, env = view.run, view.run.environment
    reasons = env.not_measured
    others = sorted((key, version) for key, version in env.versions.items() if key != "loaderbench")
    own = run.loaderbench_version or env.versions.get("loaderbench") or "unknown"
    return (
        Fact("GPU", head.accelerator(env, is_attached=view.is_attached)),
        *gpu_facts(env.gpus, [use for trial in run.trials for use in trial.gpus]),
        Fact("Available CPUs", head.allotted(env)),
        Fact("CPU model", words.name(env.cpu_model) if env.cpu_model else numbers.missing(reasons.get("cpu_model"))),
        Fact("Memory", numbers.memory(env.memory_total_bytes)),
        Fact("Memory limit", _limit(env)),
        Fact("Shared memory", numbers.memory(env.shm_total_bytes, reasons.get("shm_total_bytes"))),
        Fact("Open-file limit", _open_files(env)),
        Fact("Platform", words.outside(env.platform, words.LABEL_LIMIT)),
        Fact("Process start method", words.name(env.start_method)),
        Fact("Python", words.name(env.python)),
        *(Fact(words.plain(key, 40), words.name(version)) for key, version in others),
        Fact("loaderbench", words.name(own)),
    )


def _limit(env: Environment) -> Text:
    """The limit of a container. `None` means that there is no limit."""
    if env.memory_limit_bytes is not None:
        return numbers.memory(env.memory_limit_bytes)
    return Text("none", env.not_measured.get("memory_limit_bytes"))


def _open_files(env: Environment) -> Text:
    if env.open_files_limit is None:
        return numbers.missing(env.not_measured.get("open_files_limit"))
    return Text(f"{env.open_files_limit:,}")


def _of_sweep(run: RunRecord) -> tuple[str, ...]:
    """The method of measurement, with the numbers of this run."""
    cache = words.plain(str(run.section("measure").get("cache") or ""), 20)
    rates = "Samples/s and data wait" if has_data_wait(run.consumer) else "Samples/s and time in next()"
    return (
        _plan(run),
        f"{rates}: steady state only, after a warm-up that fills the queues of all workers."
        + (f" Page cache: {cache}." if cache else ""),
        _OF_PAIRS if run.kind == "ab" else _OF_ROUNDS,
        "GPU utilization: share of time with a kernel resident. It does not show how busy the GPU was, and no verdict "
        "is based on it.",
    )


def _plan(run: RunRecord) -> str:
    configs = count(run.plan.configurations, "config")
    rounds = f"{count(run.plan.rounds, 'round')}, order shuffled within each round"
    pairs = "both versions in interleaved pairs, their order alternating"
    return f"Plan: {configs}, {pairs if run.kind == 'ab' else rounds}. {_PROCESSES}"


def _of_profile(trial: Trial) -> tuple[str, ...]:
    """The method of measurement, with the numbers of this profile."""
    traced = (
        "Stages in the workers: timed by wrappers around worker_init_fn and collate_fn, set only while an epoch "
        "starts. Your source code was not changed."
    )
    device = " With a CUDA device, two events on its stream time the wait, so data wait is idle time of the GPU."
    return (
        "Data wait: time inside next() of your loop, in your process. Everything else counts as your step."
        f"{device if trial.gpus else ''} No CUDA synchronization is added.",
        f"Samples/s, data wait and all means: steady state only. Warm-up ({_warmup(trial)}) and epoch boundaries are "
        "excluded.",
        "One process has no interval; profile again to see how much two runs differ.",
        *([traced] if trial.stages else []),
    )


def _of_attached(trial: Trial) -> tuple[str, ...]:
    """The method of observing a process from outside, with the time it was watched."""
    watched = numbers.duration(trial.steady_s).text
    return (
        f"Watched from outside for {watched}: by py-spy, if it can read stacks, and by what the kernel says that "
        "threads wait for. Nothing in the process was changed.",
        "Data wait: share of the main thread\u2019s stack samples inside next(). Without stacks, share of checks in "
        "which it waited for a worker\u2019s batch.",
        "Batches and samples cannot be counted from outside, so there is no rate. Epoch boundaries are not excluded.",
        "One process has no interval; attach again to see how much two observations differ.",
    )


def _warmup(trial: Trial) -> str:
    if trial.warmup_batches is None:
        return "the first batches"
    return count(trial.warmup_batches, "batch", "batches")


def gpu_facts(gpus: Sequence[Gpu], uses: Sequence[GpuUse] = ()) -> Iterator[Fact]:
    """Facts about the GPUs, a line for all that are alike. `uses` are their readings from the run's trials.

    A fact is omitted if the run did not record it.
    """
    for label, describe in (("GPU link", partial(_link, uses)), ("GPU clock limit", _clock), ("GPU NUMA", _place)):
        by_text: dict[str, list[int]] = {}
        for gpu in gpus:
            if text := describe(gpu):
                by_text.setdefault(text, []).append(gpu.index)
        if by_text:
            one = len(gpus) == 1
            lines = [text if one else f"GPU {', '.join(map(str, which))}: {text}" for text, which in by_text.items()]
            yield Fact(label, words.outside("; ".join(lines), words.LABEL_LIMIT))


def _link(uses: Sequence[GpuUse], gpu: Gpu) -> str:
    """`PCIe 4 x8 (max PCIe 5 x16)`: the fastest link that a trial has read, because an idle link runs slower."""
    links = [PcieLink(use.pcie_generation, use.pcie_width) for use in uses if use.index == gpu.index]
    known = [link for link in links if link.gb_per_s is not None]
    used = f"{max(known, key=lambda link: link.gb_per_s or 0.0)}" if known else ""
    if gpu.pcie_max_generation is None and gpu.pcie_max_width is None:
        return used
    most = f"max {PcieLink(gpu.pcie_max_generation, gpu.pcie_max_width)}"
    return f"{used} ({most})" if used else most


def _clock(gpu: Gpu) -> str:
    return "" if gpu.sm_clock_max_mhz is None else numbers.with_unit(numbers.number(gpu.sm_clock_max_mhz, 4), "MHz")


def _place(gpu: Gpu) -> str:
    node = "" if gpu.numa_node is None else f"node {gpu.numa_node}"
    cpus = "" if gpu.near_cpus is None else f"local CPUs {gpu.near_cpus}"
    return ", ".join(filter(None, (node, cpus)))
