"""About the run: its machine, how it was measured, and what the words mean."""

from __future__ import annotations

from loaderbench.records import Environment, RunRecord, Trial
from loaderbench.report import head, numbers, words
from loaderbench.report.model import Details, Fact, Facts, Paragraph, Section, Text
from loaderbench.report.view import View

_GLOSSARY = (
    ("configuration", "One point of the sweep: a value for every axis."),
    ("trial", "One configuration measured once, in a process of its own."),
    ("round", "Every live configuration measured once, in shuffled order."),
    ("steady state", "The batches that are measured, after the warm-up; the first batch is timed on its own."),
    ("data wait", "Time the consumer is blocked in next() with nothing left to compute (a data stall)."),
    ("data wait share", "Data wait over the wall time of the steady state."),
    ("time to first batch", "From iter(loader) to the first batch, worker start included."),
    ("stage", "What a sample passes through: read, decode, transform, collate, transport, transfer, compute."),
    ("consumer", "What eats the batches: a real training step, an emulated accelerator, or nothing."),
    ("demand", "Samples/s the consumer could eat if data were free."),
    ("ceiling", "Samples/s with loading made free: batches replayed from memory, or the demand emulated."),
    ("headspace", "The share of time per batch that could be won: (measured \u2212 ceiling) / measured."),
    ("interference", "What loader and consumer take together beyond the slower of the two alone."),
    ("contention", "What a sample costs more because other workers share caches, memory, cores or a lock with it."),
    ("ties", "Configurations whose difference is within the noise; the cheapest of them is chosen."),
    ("verdict", "What explains the run: what bounds it, at which stage, and what limits that stage."),
)  # fmt: skip
_SWEEPS_ONLY = {"configuration", "trial", "round", "ties", "demand", "ceiling", "interference", "contention"}
_PROFILES_ONLY = (
    ("step", "From one call of next() to the next: the data wait, and what your loop does with the batch."),
    ("epoch boundary", "From asking for more at an epoch\u2019s end to the first batch of the next."),
    ("ceiling", "Samples/s of your own steps with no data wait between them."),
)


def section(view: View) -> Section:
    """Folded, at the end of the page."""
    terms = tuple(term for term in _GLOSSARY if not view.profile or term[0] not in _SWEEPS_ONLY)
    glossary = (*terms, *(_PROFILES_ONLY if view.profile else ()))
    method = _of_profile(view.profile) if view.profile else _of_sweep(view.run)
    folds = (
        Details("Environment", (Facts(_environment(view.run)),)),
        Details("Method", tuple(Paragraph(Text(text)) for text in method)),
        Details("Glossary", (Facts(tuple(Fact(word, Text(meaning)) for word, meaning in glossary)),)),
    )
    return Section(id="about", title="About this run", blocks=folds)


def _environment(run: RunRecord) -> tuple[Fact, ...]:
    """The machine and its versions, all that is known."""
    env = run.environment
    reasons = env.not_measured
    others = sorted((key, version) for key, version in env.versions.items() if key != "loaderbench")
    own = run.loaderbench_version or env.versions.get("loaderbench") or "unknown"
    return (
        Fact("Accelerator", head.accelerator(env)),
        Fact("Allotted CPUs", head.allotted(env)),
        Fact("CPU", words.name(env.cpu_model) if env.cpu_model else numbers.missing(reasons.get("cpu_model"))),
        Fact("Memory", numbers.memory(env.memory_total_bytes)),
        Fact("Memory limit", _limit(env)),
        Fact("Shared memory", numbers.memory(env.shm_total_bytes, reasons.get("shm_total_bytes"))),
        Fact("Open files, limit", _open_files(env)),
        Fact("Platform", words.outside(env.platform, words.LABEL_LIMIT)),
        Fact("Trials start by", words.name(env.start_method)),
        Fact("Python", words.name(env.python)),
        *(Fact(words.plain(key, 40), words.name(version)) for key, version in others),
        Fact("loaderbench", words.name(own)),
    )


def _limit(env: Environment) -> Text:
    if env.memory_limit_bytes is not None:
        return numbers.memory(env.memory_limit_bytes)
    reason = env.not_measured.get("memory_limit_bytes")
    return numbers.missing(reason) if reason else Text("none")


def _open_files(env: Environment) -> Text:
    if env.open_files_limit is None:
        return numbers.missing(env.not_measured.get("open_files_limit"))
    return Text(f"{env.open_files_limit:,}")


def _of_sweep(run: RunRecord) -> tuple[str, ...]:
    """How it was measured, in the numbers of this run."""
    cache = _setting(run, "cache")
    rounds = numbers.count(run.plan.rounds, "round")
    return (
        f"Each trial ran in a process of its own. {numbers.count(run.plan.configurations, 'configuration')} were "
        f"planned for {rounds}, in an order shuffled within each round; monitors watched from outside.",
        "Samples/s and data wait share belong to the steady state, after a warm-up that fills every worker\u2019s queue"
        + (f", with a {cache} page cache." if cache else "."),
        "Intervals are 95% by Student\u2019s t over rounds, never over the batches of one trial. Configurations that "
        "cannot be told from the fastest are ties, and the cheapest of them is called the best.",
        "GPU utilization says that a kernel was resident in the sampling period, not that the device was busy: it is "
        "context, never the proof.",
    )


def _setting(run: RunRecord, key: str) -> str | None:
    measure = run.suite.get("measure")
    value = measure.get(key) if isinstance(measure, dict) else None
    return words.plain(str(value), 20) if value else None


def _of_profile(trial: Trial) -> tuple[str, ...]:
    """How it was measured, in the numbers of this profile."""
    warmup = "The first batches" if trial.warmup_batches is None else _first_batches(trial.warmup_batches)
    traced = (
        "The stages inside the workers were timed through the worker_init_fn of a private view of your loader, "
        "so that nothing of yours and nothing of torch was changed."
    )
    device = (
        " Where your loop used a CUDA device, two events on its stream did that, so that data wait is what the device "
        "stood still for."
    )
    return (
        "A clock ran around next() of your own loop, in your own process: what lies inside is data wait, what lies "
        f"between is your step.{device if trial.gpus else ''} Nothing was synchronised.",
        f"{warmup} and the boundaries between epochs are kept apart: samples/s, data wait share and all means belong "
        "to the steady state.",
        "It was one process, so that there is no interval; profile it again to see how far two runs lie apart.",
        *([traced] if trial.stages else []),
    )


def _first_batches(count: int) -> str:
    if count == 0:
        return "No batch was left out as warm-up,"
    return "The first batch" if count == 1 else f"The first {count:,} batches"
