"""Runs whose every string is hostile: markup, far too long, or not Unicode."""

from dataclasses import fields, is_dataclass, replace

from run_factory import partly_failed, typical

from loaderbench.records import Ceiling, Config, DatasetSummary, Evidence, Failure, RunRecord

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'`&\u202eRTL\u2028 \u05e9\u05dc\u05d5\u05dd"
LONG = "x" * 10_000


def hostile() -> RunRecord:
    """Every string from outside is an injection attempt, or far too long."""
    run = typical()
    evil: dict[object, str] = {32: HOSTILE, 128: LONG}

    def taint(config: Config) -> Config:
        return {**{k: v for k, v in config.items() if k != "batch_size"}, "batch_size": evil[config["batch_size"]]}

    trials = tuple(replace(t, config=taint(t.config), log=HOSTILE) for t in run.trials)
    last = replace(
        trials[-1], id=HOSTILE, status="failed", samples_per_s=None, failure=Failure(HOSTILE, HOSTILE + LONG, HOSTILE)
    )
    assert run.best
    return replace(
        run,
        name=HOSTILE + LONG,
        suite={"name": HOSTILE, HOSTILE: [HOSTILE, float("nan")], "measure": HOSTILE, "consumer": HOSTILE},
        environment=replace(
            run.environment, cpu_model=HOSTILE, platform=LONG, versions={HOSTILE: HOSTILE, "torch": LONG}
        ),
        dataset=DatasetSummary(HOSTILE),
        plan=replace(run.plan, axes={"num_workers": [0, 1, 2, 3], "batch_size": [HOSTILE, LONG]}),
        trials=(*trials[:-1], last),
        configurations=tuple(replace(c, config=taint(c.config)) for c in run.configurations),
        best=replace(run.best, config=taint(run.best.config), why_this_one=HOSTILE, ties=()),
        baseline=replace(run.baseline, config=taint(run.baseline.config), why_this_one=HOSTILE),
        ceiling=Ceiling(samples_per_s=1000, headspace=0.2, basis=HOSTILE),
        verdict=replace(
            run.verdict,
            headline=HOSTILE + LONG,
            work=HOSTILE,
            evidence=(HOSTILE, LONG),
            evidence_parts=(Evidence("cause", HOSTILE + LONG, LONG), Evidence("target", "", HOSTILE)),
        ),
        recommendations=tuple(
            replace(
                r, id=HOSTILE, title=HOSTILE, caveat=HOSTILE, snippet=HOSTILE, reason=HOSTILE, change={HOSTILE: HOSTILE}
            )
            for r in run.recommendations
        ),
        warnings=(HOSTILE, LONG, "surrogate \udcff escape \x1b[31m"),
        notes=(HOSTILE,),
        loaderbench_version=HOSTILE,
    )


def surrogates() -> RunRecord:
    """Every string of the run ends in a byte that is not Unicode, as the name of a file can."""
    run = replace(partly_failed(), suite={"caf\udce9": "caf\udce9"}, notes=("x",))
    odd = tainted(run)
    assert isinstance(odd, RunRecord)
    versions = {**odd.environment.versions, "caf\udce9": "1"}
    return replace(odd, environment=replace(odd.environment, versions=versions))


_ONE_OF_A_FEW = {"status", "role", "consumer", "bound", "confidence", "basis"}


def tainted(value: object) -> object:
    if isinstance(value, str):
        return f"{value} caf\udce9.jpg"
    if isinstance(value, tuple | list):
        return type(value)(map(tainted, value))
    if isinstance(value, dict):
        return {key: tainted(held) for key, held in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        kept = {f.name: getattr(value, f.name) for f in fields(value) if f.name not in _ONE_OF_A_FEW}
        return replace(value, **{name: tainted(held) for name, held in kept.items()})
    return value
