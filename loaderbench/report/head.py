"""The head of the page: what was measured, where, whether to its end, and why to distrust it."""

from __future__ import annotations

import shlex

from loaderbench.records import Environment, RunRecord, Trial
from loaderbench.report import numbers, words
from loaderbench.report.model import Fact, State, Text
from loaderbench.report.view import View


def state(view: View) -> State:
    """Complete, or how far the run came."""
    return _of_profile(view.run, view.profile) if view.profile else _of_sweep(view.run)


def _of_profile(run: RunRecord, trial: Trial) -> State:
    """How many batches were measured, and whether the loop came to its end."""
    if trial.status != "completed":
        return State("bad", "nothing was measured")
    counted = numbers.count(trial.batches or 0, "batch", "batches")
    if run.complete:
        return State("ok", f"complete: {counted}")
    return State("warn", f"partial: {counted}", "The loop did not come to its end; what it did until then is below.")


def _of_sweep(run: RunRecord) -> State:
    """A run without one measurement failed, whether it came to its end or not."""
    done = sum(trial.status == "completed" for trial in run.sweep)
    if not run.sweep:
        return State("warn", "partial: no trial was run")
    if not done:
        label = f"failed: none of {numbers.count(len(run.sweep), 'trial')} measured"
        planned = numbers.count(run.plan.trials, "trial")
        return State("bad", label, None if run.complete else f"{len(run.sweep):,} of {planned} ran.")
    if run.complete:
        failed = done < len(run.sweep)
        of = f"{done} of {numbers.count(len(run.sweep), 'trial')} measured" if failed else numbers.count(done, "trial")
        return State("warn" if failed else "ok", f"complete: {of}")
    label = f"partial: {done} of {numbers.count(run.plan.trials, 'trial')} measured"
    return State("warn", label, f"What was measured is below, the rest reads \u201cnot run\u201d.{_how_to_go_on(run)}")


def _how_to_go_on(run: RunRecord) -> str:
    """What to type; the folder is that of the page, whatever it is called by now."""
    if not run.suite_file:
        return ""
    file = words.plain(shlex.quote(run.suite_file), words.LABEL_LIMIT)
    return f" Go on with: loaderbench run {file} --resume FOLDER_OF_THIS_PAGE"


def facts(view: View) -> tuple[Fact, ...]:
    """The line of facts below the name; what a profile iterates comes first."""
    run, environment = view.run, view.run.environment
    machine = Fact("Accelerator", accelerator(environment)), Fact("Allotted CPUs", allotted(environment))
    data = words.outside(run.dataset.description, words.LABEL_LIMIT)
    return (
        *((Fact("Loader", data), *machine) if view.profile else (*machine, Fact("Dataset", data))),
        Fact("Versions", _versions(run)),
        Fact("When", Text(numbers.when(run.started_at, run.finished_at))),
    )


def accelerator(environment: Environment) -> Text:
    """`2 x NVIDIA H200, 141 GiB each`, or that there is none."""
    if not environment.gpus:
        reason = words.reason_of("gpus", environment.not_measured)
        return Text("no accelerator", words.plain(reason, words.SENTENCE_LIMIT) if reason else None)
    kinds: dict[tuple[str, int], int] = {}
    for gpu in environment.gpus:
        kinds[gpu.name, gpu.memory_total_bytes] = kinds.get((gpu.name, gpu.memory_total_bytes), 0) + 1
    return words.outside(", ".join(_kind(*kind, many) for kind, many in kinds.items()), words.LABEL_LIMIT)


def _kind(name: str, memory_bytes: int, many: int) -> str:
    shown = words.plain(name, words.NAME_LIMIT)
    size = numbers.memory(memory_bytes).text
    return f"{many} {numbers.TIMES} {shown}, {size} each" if many > 1 else f"{shown}, {size}"


def allotted(environment: Environment) -> Text:
    """The CPUs the run may use, of those the machine has."""
    return Text(
        f"{environment.cpus_allotted:g} of {environment.cpus_online} online",
        "min(affinity, cgroup quota): what the loader can use, whatever the machine has",
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


def notes(run: RunRecord) -> tuple[Text, ...]:
    """What is good to know, with the reason why an axis lost values when no note says so already."""
    said = [*run.notes, *run.remarks]
    said += [f"{axis}: {why}" for axis, why in run.plan.collapsed.items() if not any(why in note for note in said)]
    return tuple(words.sentence(text) for text in said)
