"""The result of tuning, as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from loaderbench.code_places import CodeLine
from loaderbench.diagnosis.thresholds import MOST
from loaderbench.diagnosis.wording import available_cpus
from loaderbench.environment import cpus_allotted
from loaderbench.loaders.worker_options import WORKER_OPTIONS, setup_code
from loaderbench.records import Config
from loaderbench.records.words import count
from loaderbench.report import numbers
from loaderbench.tuning.edit import HUGGING_FACE, HUGGING_FACE_NAMES, diff_of_call
from loaderbench.tuning.open_fixes import arguments, in_detail
from loaderbench.tuning.plan import OwnLoop
from loaderbench.tuning.tuned import Tuned

ALIKE = 0.9
"""If trials of the current arguments are below this share of the script's rate, the gain is overestimated."""


def headline(name: str, tuned: Tuned) -> str:
    """A line such as `train_loader: set num_workers=2: +90% vs current arguments (75-107%), 3 pairs`."""
    found = tuned.gain
    if found is None:
        return f"{name}: keep {arguments(tuned.present)}: {tuned.why_none}"
    gained = numbers.gain(found.est, found.lo, found.hi, "vs current arguments").text
    return f"{name}: set {arguments(tuned.changed)}: {gained}, {count(tuned.pairs, 'pair')}"


def details(tuned: Tuned, made_at: CodeLine | None, own: OwnLoop) -> Iterator[str]:
    """Yield doubts, the edit to make if the loader's line is known, and the functions that it needs."""
    yield from asides(tuned)
    yield from _threads(tuned, own)
    if not tuned.changed:
        return
    yield from _doubts(tuned, own)
    yield from _step_may_gain(tuned, own)
    keywords = {name: value for name, value in tuned.changed.items() if name not in WORKER_OPTIONS}
    if made_at is not None and keywords:
        yield diff_of_call(made_at, keywords) or _where_created(made_at, keywords)
    if setup := setup_code(tuned.changed):
        yield f"{_how_to_call(tuned)}\n{setup}"


def _how_to_call(tuned: Tuned) -> str:
    """How to call `set_up`. The user's `worker_init_fn` is kept, since it may seed each worker."""
    if not _workers(tuned):
        return "Define set_up, and call set_up(0) before training:"
    if tuned.worker_init_fn:
        return f"Keep your worker_init_fn ({tuned.worker_init_fn}), and call set_up(worker_id) at its end, with"
    return "Pass worker_init_fn=set_up, with"


def _workers(tuned: Tuned) -> int:
    return int({**tuned.present, **tuned.changed}.get("num_workers") or 0)


def _doubts(tuned: Tuned, own: OwnLoop) -> Iterator[str]:
    """Yield why the script may gain less than the trials."""
    in_trials, in_script = tuned.present_samples_per_s, own.samples_per_s
    if in_trials and in_script and in_trials < ALIKE * in_script:
        yield (
            "Warning: trials of the current arguments ran slower than the script "
            f"({in_trials:,.0f} vs {in_script:,.0f} samples/s); expect a smaller gain"
        )


def _step_may_gain(tuned: Tuned, own: OwnLoop) -> Iterator[str]:
    """Yield why the script may gain more than trials in which the step takes most of the time."""
    workers, before = _workers(tuned), int(tuned.present.get("num_workers") or 0)
    step_share = (tuned.samples_per_s or 0.0) * (own.step_s_per_sample or 0.0)
    if workers < before and own.computes_on_cpu and step_share >= MOST:
        yield (
            f"The trials emulate the step as slow as it was with {count(before, 'worker')}. It computes on the CPU and "
            "may be faster with fewer workers, so the gain may be larger"
        )


def asides(tuned: Tuned) -> Iterator[str]:
    """Yield notes on the result: its caveats and costs, and other changes that may be faster."""
    yield from _neighbors(tuned)
    yield from cautions(tuned.caveats)
    if tuned.costs:
        yield f"Costs: {', '.join(tuned.costs)}"
    yield from map(in_detail, tuned.left)


def cautions(caveats: Iterable[str]) -> Iterator[str]:
    """One line per caveat."""
    return (f"Caveat: {caveat}" for caveat in caveats)


def _neighbors(tuned: Tuned) -> Iterator[str]:
    if tuned.others_cpus is not None:
        yield (
            f"Warning: other programs used {tuned.others_cpus:.1f} of {available_cpus(cpus_allotted())} during the "
            "trials. Without them, other arguments may be faster: tune again when the CPUs are free"
        )


def _threads(tuned: Tuned, own: OwnLoop) -> Iterator[str]:
    """Yield what else to try if workers compete for CPUs with the step's threads."""
    workers = tuned.arguments.get("num_workers") or 1
    if own.host_threads > 1 and own.host_threads + int(workers) > cpus_allotted():
        yield (
            f"The training step uses {own.host_threads} threads, which compete with workers for "
            f"{available_cpus(cpus_allotted())} (trials include this). Try torch.set_num_threads(1) in the main "
            "process, then tune again"
        )


def _where_created(at: CodeLine, changes: Config) -> str:
    if at.library == HUGGING_FACE and changes.keys() <= HUGGING_FACE_NAMES.keys():
        own = arguments({HUGGING_FACE_NAMES[name]: value for name, value in changes.items()})
        return f"Hugging Face's Trainer creates this loader, in a call at {at}; set TrainingArguments({own})"
    if at.library:
        package = at.library.partition(".")[0]
        return f"{package} creates this loader, in a call at {at}; pass the arguments through that call"
    return f"The loader is created at {at}"
