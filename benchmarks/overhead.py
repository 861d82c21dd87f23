"""Cost of recording and tracing per batch, step and photo, at import and in memory, compared with other profilers.

    python benchmarks/overhead.py [--quick] [--only PART ...] [--data DIR]

Prints one table (Markdown). Blocks with and without recording are interleaved in random order, each a quarter of a
second or less. Figures with brackets are means of paired differences or ratios, with their 95% interval (Student's t
without a tenth at each end). CPU time decides, because other programs affect it less; wall time is shown as well.
`--quick` takes half a minute and has wide intervals. The row of TraceML needs `uv sync --group rivals`, and that of
`--live` needs `uv sync --group trackers`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # or torch.profiler writes a line at every start

import torch
from overhead_gpu import GPU_BOUND, gpu_loops
from overhead_loop import BARE, OURS, TIMER, empty_loop, training_loop
from overhead_pairs import Interval, Rounds, cpu, wall
from overhead_photos import OFF, ON, WORKERS, Tracing, in_this_process, in_workers, lines_in_workers
from overhead_profile import (
    LIVE,
    LIVE_BARE,
    PROFILED,
    RANK,
    RANK_BARE,
    Profiled,
    profiled_live,
    profiled_rank,
    profiled_script,
)
from overhead_start import imports, memory

from loaderbench.datasets.photos import cached_photos
from loaderbench.environment import describe_machine

RIVALS = ("torch.profiler", "cProfile", "TraceML")


@dataclass(frozen=True)
class Row:
    """One line of the table; `ok` is `None` if there is no requirement."""

    what: str
    asked: str
    got: str
    by_the_wall_clock: str = ""
    ok: bool | None = None


@dataclass(frozen=True)
class Effort:
    """How long to measure."""

    warm_up_s: float
    empty_rounds: int
    rival_rounds: int
    profile_rounds: int
    loop_s: float
    photos: int
    photos_s: float
    imports: int
    steps: int


QUICK = Effort(0.2, 10, 2, 10, 2.0, 64, 2.5, 5, 100_000)
FULL = Effort(1.2, 60, 12, 30, 90.0, 512, 60.0, 15, 1_000_000)


def main() -> None:
    arguments = parse()
    effort = QUICK if arguments.quick else FULL
    rows = [row for part in arguments.only for row in PARTS[part](effort, arguments.data)]
    print(machine(), table(rows), sep="\n\n")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="about half a minute, with wide intervals")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--data", type=Path, help="a folder of photos by class (default: generated ones)")
    return parser.parse_args()


def of_empty_loop(effort: Effort) -> Iterator[Row]:
    told("an empty loop")
    taken = empty_loop(effort.empty_rounds, effort.warm_up_s)
    ours, what = taken.added_s(OURS, BARE, cpu), "added to a batch, empty body, us: "
    yield Row(what + OURS, "at most 2", us(ours), us(taken.added_s(OURS, BARE, wall)), ours.mean <= 2e-6)
    yield Row(what + TIMER, "", us(taken.added_s(TIMER, BARE, cpu)), us(taken.added_s(TIMER, BARE, wall)))


def of_training(effort: Effort) -> Iterator[Row]:
    told("a training step, with rivals")
    taken, why_no_traceml = training_loop(effort.rival_rounds, effort.loop_s, effort.warm_up_s)
    kept, pairs = taken.kept(OURS, BARE, cpu), len(taken.found[OURS])
    step = f"step of {taken.step_s(BARE) * 1e3:.2f} ms"
    ok = kept.lo <= 1 <= kept.hi and kept.width < 0.01
    what = f"throughput kept, {step}, {pairs} pairs: {OURS}"
    yield Row(what, "holds 1, width below 0.01", ratio(kept), ratio(taken.kept(OURS, BARE, wall)), ok)
    for name in (OURS, *RIVALS):
        yield of_rival(taken, name, f"added to a {step}, us: {name}", why_no_traceml)


def of_profile(effort: Effort) -> Iterator[Row]:
    told("a script under profile")
    for workers in (1, 0):
        found = profiled_script(workers, effort.profile_rounds)
        added, step = found.added_s(), f"step of {found.rounds.step_s(BARE) * 1e3:.2f} ms"
        what = (
            f"added to a {step}, {workers} workers, us: {PROFILED}, of these in its threads {found.threads_s * 1e6:.2f}"
        )
        yield Row(what, "at most 5", us(added), us(found.wall_added_s()), added.mean <= 5e-6)
    yield of_rank(profiled_rank(effort.profile_rounds))


def of_live(effort: Effort) -> Iterator[Row]:
    told("a script that a tracker follows")
    if find_spec("prometheus_client") is None:
        yield Row(LIVE, "", "not installed: prometheus-client")
        return
    found = profiled_live(effort.profile_rounds)
    yield Row(beyond_profile(found, LIVE), "", us(found.beyond_s(LIVE, LIVE_BARE)))


def of_gpu(effort: Effort) -> Iterator[Row]:
    told("loops on a GPU")
    if not torch.cuda.is_available():
        yield Row(f"{OURS} on a GPU", "", "no CUDA device")
        return
    for name, taken in gpu_loops(effort.loop_s, effort.warm_up_s):
        what = f"{name}, {taken.wall_step_s(BARE) * 1e3:.2f} ms"
        if name == GPU_BOUND:  # the host's CPU time is that of spinning until the GPU is done
            kept = taken.kept(OURS, BARE, wall)
            yield Row(f"throughput kept, {what}: {OURS}", "holds 1", "", ratio(kept), kept.lo <= 1 <= kept.hi)
            continue
        added = taken.added_s(OURS, BARE, cpu)
        yield Row(
            f"added to {what}, us: {OURS}",
            "at most 5",
            us(added),
            us(taken.added_s(OURS, BARE, wall)),
            added.mean <= 5e-6,
        )


def of_rank(found: Profiled) -> Row:
    added = found.beyond_s(RANK, RANK_BARE)
    return Row(beyond_profile(found, f"{RANK} (1 of 2)"), "at most 2", us(added), "", added.mean <= 2e-6)


def beyond_profile(found: Profiled, name: str) -> str:
    return f"added to a step of {found.rounds.step_s(BARE) * 1e3:.2f} ms, us: {name}, over one process's"


def of_rival(taken: Rounds, name: str, what: str, why_not: str) -> Row:
    if name not in taken.found:
        return Row(what, "", why_not)
    return Row(what, "", us(taken.added_s(name, BARE, cpu)), us(taken.added_s(name, BARE, wall)))


def of_tracing(what: str, found: Tracing) -> Row:
    taken = found.rounds
    kept, sample_ms = taken.kept(ON, OFF, cpu), taken.step_s(OFF) * 1e3
    pairs, added = len(taken.found[ON]), us(taken.added_s(ON, OFF, cpu))
    what = f"throughput kept, tracing {found.timed_share:.1%} of {what}, {sample_ms:.2f} ms each, {pairs} pairs"
    got = f"{ratio(kept)}; {added} us a photo"
    return Row(what, "at least 0.99", got, ratio(taken.kept(ON, OFF, wall)), kept.mean >= 0.99)


def of_lines(taken: Rounds) -> Row:
    kept, pairs = taken.kept(ON, OFF, cpu), len(taken.found[ON])
    what = f"throughput kept, reading stacks of {WORKERS} traced workers, {pairs} pairs"
    return Row(what, "at least 0.995", ratio(kept), ratio(taken.kept(ON, OFF, wall)), kept.mean >= 0.995)


def of_photos(effort: Effort, data: Path | None) -> Iterator[Row]:
    root = data or cached_photos(images=effort.photos)
    yield of_tracing(f"photos, {WORKERS} workers", in_workers(root, 4, effort.photos_s))
    yield of_tracing("photos, 0 workers", in_this_process(root, 2, effort.photos_s))
    yield of_lines(lines_in_workers(root, 4, effort.photos_s))


def of_imports(effort: Effort) -> Iterator[Row]:
    told("imports")
    for code, found in imports(effort.imports).items():
        torch = "torch imported" if found.torch else "torch not imported"
        got = f"{torch}; least of {effort.imports}: {found.least_s * 1e3:.0f}"
        ok = found.median_s <= 0.05 and not found.torch
        yield Row(f"`{code}`, ms", "at most 50", got, f"{found.median_s * 1e3:.0f}", ok)


def of_memory(effort: Effort) -> Iterator[Row]:
    told("memory")
    found, what = memory(effort.steps), f"growth over {effort.steps:,} steps, MB: "
    for name, size in (("resident", found.resident_bytes), ("peak of Python's own", found.python_bytes)):
        yield Row(what + name, "below 50", f"{size / 1e6:.1f}", "", size < 50e6)


PARTS: dict[str, Callable[[Effort, Path | None], Iterator[Row]]] = {
    "empty": lambda effort, _: of_empty_loop(effort),
    "training": lambda effort, _: of_training(effort),
    "profile": lambda effort, _: of_profile(effort),
    "live": lambda effort, _: of_live(effort),
    "gpu": lambda effort, _: of_gpu(effort),
    "photos": of_photos,
    "imports": lambda effort, _: of_imports(effort),
    "memory": lambda effort, _: of_memory(effort),
}


def us(found: Interval) -> str:
    return found.written(2, 1e6)


def ratio(found: Interval) -> str:
    return found.written(4)


def told(what: str) -> None:
    print(f"{what} ...", file=sys.stderr, flush=True)


def machine() -> str:
    found = describe_machine("", (), {})
    packages = {**found.versions, **{name: version(name) for name in ("traceml-ai",)}}
    shown = [
        f"{name} {packages[name]}" for name in ("torch", "torchvision", "pillow", "traceml-ai") if packages.get(name)
    ]
    load = f"load average {os.getloadavg()[0]:.1f} at the end"
    return f"{found.cpu_model}, {found.cpus_allotted:g} CPUs, {load}; Python {found.python}, {', '.join(shown)}"


def version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def table(rows: Sequence[Row]) -> str:
    lines = [("what", "asked", "by CPU time", "by the wall clock", "ok")]
    lines += [(row.what, row.asked, row.got, row.by_the_wall_clock, said(row.ok)) for row in rows]
    widths = [max(len(line[column]) for line in lines) for column in range(5)]
    lines.insert(1, tuple("-" * width for width in widths))  # type: ignore[arg-type]
    return "\n".join("| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in lines)


def said(ok: bool | None) -> str:
    return "" if ok is None else "yes" if ok else "NO"


if __name__ == "__main__":
    main()
