"""The head of the report: what was measured, on what machine, and whether the run is complete."""

from __future__ import annotations

import shlex
from collections import Counter

from loaderbench.records import Configuration, Environment, RunRecord, Trial
from loaderbench.records.words import count
from loaderbench.report import numbers, words
from loaderbench.report.model import Fact, State, Text, Tone
from loaderbench.report.view import View


def state(view: View) -> State:
    """Whether the run is complete, or how far it got."""
    run = view.run
    tried = [configuration for configuration in run.configurations if configuration.trials]
    counted, hint = _of_profile(run, view.profile) if view.profile else _of_sweep(run)
    if run.kind == "ab":
        done = sum(trial.status == "completed" for trial in run.ab_trials)
        ran = count(len(run.ab_trials), "trial")
        counted, hint = ran if done == len(run.ab_trials) else f"{done} of {ran} measured", None
    if run.in_progress:
        return State(
            "warn", f"provisional: {counted}", "The run is in progress. Reload this report after the next round."
        )
    tone, word = outcome(run.complete, len(tried), sum(is_measured(configuration) for configuration in tried))
    return State(tone, f"{word}: {counted}", hint)


def is_measured(configuration: Configuration) -> bool:
    """Whether the configuration has a rate, or at least the CPU use of an attached process."""
    return configuration.samples_per_s is not None or configuration.cpu_percent_of_allotted is not None


def outcome(complete: bool, tried: int, measured: int) -> tuple[Tone, str]:
    """The tone and word for a run in its report and in a list of runs, from its numbers of configurations.

    A run without any measurement failed, complete or not.
    """
    if tried and not measured:
        return "bad", "failed"
    word = "complete" if complete and tried else "partial"
    return "ok" if word == "complete" and measured == tried else "warn", word


def _of_profile(run: RunRecord, trial: Trial) -> tuple[str, str | None]:
    """The number of measured batches, and a hint if the loop did not finish."""
    if trial.status != "completed":
        return "nothing was measured", None
    if trial.is_from_outside:
        return f"watched for {numbers.duration(trial.steady_s or 0.0).text}", None
    hint = "The loop did not finish; the report covers the part that ran."
    return count(trial.batches or 0, "batch", "batches"), None if run.complete else hint


def _of_sweep(run: RunRecord) -> tuple[str, str | None]:
    """The number of measured trials, and how to resume if some are missing."""
    done = sum(trial.status == "completed" for trial in run.sweep)
    ran, planned = count(len(run.sweep), "trial"), count(run.plan.trials, "trial")
    if not run.sweep:
        return "no trial was run", None
    if not done:
        return f"none of {ran} measured", None if run.complete else f"{len(run.sweep):,} of {planned} ran."
    if run.complete:
        return ran if done == len(run.sweep) else f"{done} of {ran} measured", None
    if len(run.sweep) >= run.plan.trials:
        return f"{done} of {planned} measured; stopped after the sweep", _resume_hint(run) or None
    hint = "Configs that were not measured are marked \u201cnot run\u201d."
    return f"{done} of {planned} measured", " ".join(filter(None, (hint, _resume_hint(run))))


def _resume_hint(run: RunRecord) -> str:
    """The command to resume the run. The folder is a placeholder, because the run folder can have been renamed."""
    if not run.suite_file or run.is_of_script:
        return ""
    file = words.plain(shlex.quote(run.suite_file), words.LABEL_LIMIT)
    return f"Resume: loaderbench run {file} --resume FOLDER_OF_THIS_REPORT"


def facts(view: View) -> tuple[Fact, ...]:
    """The line of facts below the run's name. In a profile, the loader comes first."""
    run, environment = view.run, view.run.environment
    gpu = accelerator(environment, is_attached=view.is_attached)
    machine = Fact("GPU", gpu), Fact("Available CPUs", allotted(environment))
    data = words.outside(run.dataset.description, words.LABEL_LIMIT)
    return (
        *((Fact("Loader", data), *machine) if view.profile else (*machine, Fact("Dataset", data))),
        Fact("Versions", _versions(run)),
        Fact("When", Text(numbers.when(run.started_at, run.finished_at))),
    )


def accelerator(environment: Environment, *, is_attached: bool = False) -> Text:
    """The GPUs, such as `2 x NVIDIA H200, 141 GiB each`, or `none`. From outside, those of a process can be hidden."""
    if not environment.gpus:
        reason = words.reason_of("gpus", environment.not_measured)
        if is_attached:
            return words.sentence(f"not seen: {reason}" if reason else "not seen")
        return Text("none", words.plain(reason, words.SENTENCE_LIMIT) if reason else None)
    kinds: dict[tuple[str, int], int] = {}
    for gpu in environment.gpus:
        name = gpu.name if gpu.of_nvidia else f"{gpu.name} ({gpu.platform})"
        kinds[name, gpu.memory_total_bytes] = kinds.get((name, gpu.memory_total_bytes), 0) + 1
    return words.outside(", ".join(_kind(*kind, many) for kind, many in kinds.items()), words.LABEL_LIMIT)


def _kind(name: str, memory_bytes: int, many: int) -> str:
    shown = words.plain(name, words.NAME_LIMIT)
    size = numbers.memory(memory_bytes).text
    return f"{many} {numbers.TIMES} {shown}, {size} each" if many > 1 else f"{shown}, {size}"


def allotted(environment: Environment) -> Text:
    """The number of CPUs available to the run, out of the machine's CPUs."""
    return Text(
        f"{environment.cpus_allotted:g} of {environment.cpus_online} online",
        "the smaller of CPU affinity and cgroup quota",
    )


def _versions(run: RunRecord) -> Text:
    environment = run.environment
    known = {"python": environment.python, **environment.versions}
    shown = [f"{key} {known[key]}" for key in ("torch", "torchvision", "python") if known.get(key)]
    if run.loaderbench_version:
        shown.append(f"loaderbench {run.loaderbench_version}")
    return words.outside(", ".join(shown), words.LABEL_LIMIT)


def warnings(run: RunRecord) -> tuple[Text, ...]:
    """Reasons to distrust the run."""
    return tuple(words.sentence(text) for text in run.warnings)


def _narrowed(run: RunRecord) -> list[str]:
    """How an adaptive sweep and a final chose the best configuration."""
    of, rounds = count(run.plan.configurations, "config"), Counter(found.rounds for found in run.dropped)
    unseen = next((found.why for found in run.dropped if not found.rounds), "")
    said = [f"{rounds[0]:,} of {of} not measured: {unseen}"] if rounds[0] else []
    parts = [f"{rounds[after]:,} after {count(after, 'round')}" for after in sorted(rounds) if after]
    said += [f"Adaptive sweep of {of}: dropped {', '.join(parts)}"] if parts else []
    if run.final is not None:
        met = f"{len(run.final.finalists)} configs compared in {count(run.final.rounds, 'more round')}"
        said.append(f"Final: {met}; {run.final.ended}")
    return said


def notes(run: RunRecord) -> tuple[Text, ...]:
    """Notes that do not affect the verdict, with the reason for each axis that lost values, unless a note gives it."""
    said = [*run.setup_notes, *_narrowed(run), *run.notes, *run.remarks]
    said += [f"{axis}: {why}" for axis, why in run.plan.collapsed.items() if not any(why in note for note in said)]
    return tuple(words.sentence(text) for text in said)
