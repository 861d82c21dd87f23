"""What a traced trial tells of its loader, a sentence each: evidence, not yet a diagnosis."""

from __future__ import annotations

from collections.abc import Sequence

from loaderbench.records import StageCost, Trial, WorkerStates


def describe_inside(trials: Sequence[Trial]) -> tuple[str, ...]:
    """Name the dearest stage and what the workers were doing; nothing for what was not measured."""
    trial = next((trial for trial in trials if trial.status == "completed"), None)
    if trial is None:
        return ()
    said = [_dearest(trial.stages, _whose(trial)) if trial.stages else "", states_in_words(trial.workers)]
    return tuple(line for line in said if line)


def in_main_process(trial: Trial) -> bool:
    """Whether the loader has no workers, so that the loop itself loads."""
    return trial.config.get("num_workers") == 0


def states_in_words(states: WorkerStates | None) -> str:
    """`workers: 71 % on a CPU, 20 % waiting for a CPU, 9 % blocked`, or nothing."""
    if states is None:
        return ""
    shares = (states.on_cpu_share, states.run_queue_share, states.blocked_share)
    on_cpu, waiting, blocked = (f"{share * 100:.0f} %" for share in shares)
    return f"workers: {on_cpu} on a CPU, {waiting} waiting for a CPU, {blocked} blocked"


def _whose(trial: Trial) -> str:
    if in_main_process(trial):
        return "a sample's time in the main process"
    is_known = trial.workers is not None or "num_workers" in trial.config
    return "the workers' time for a sample" if is_known else "a sample's time inside the loader"


def _dearest(stages: dict[str, StageCost], whose: str) -> str:
    walls_s = {name: cost.wall_s for name, cost in stages.items() if cost.wall_s is not None}
    whole_s = sum(walls_s.values())
    if whole_s <= 0:
        return ""
    name = max(walls_s, key=lambda stage: walls_s[stage])
    what = "the dataset itself" if name == "sample" else name
    return f"{what} takes {walls_s[name] / whole_s * 100:.0f} % of {whose} ({walls_s[name] * 1e3:.3g} ms)"
