"""A very long run, made up in memory."""

from dataclasses import replace
from itertools import islice, product

import run_factory as runs

from loaderbench.records import Config, RunRecord


def large(trials: int = 2000) -> RunRecord:
    """Three rounds of a sweep over five axes, made of the trials of a typical run."""
    run = runs.typical()
    values = product(range(8), range(8), range(4), range(3))
    axes = ("num_workers", "batch_size", "prefetch_factor", "worker_threads")
    configs: list[Config] = [dict(zip(axes, found, strict=True)) for found in islice(values, trials // 3)]
    made = [runs.trial(c, r, i, 300.0 + i) for r in (1, 2, 3) for i, c in enumerate(configs)]
    ranked = [runs.configuration(c, made[i :: len(configs)], len(configs) - i, i > 660) for i, c in enumerate(configs)]
    best = ranked[-1]
    assert run.best
    assert best.samples_per_s
    swept = {axis: sorted({config[axis] for config in configs}) for axis in axes}
    return replace(
        run,
        trials=tuple(made),
        configurations=tuple(ranked),
        plan=replace(run.plan, axes=swept, configurations=len(configs), trials=len(made)),
        best=replace(run.best, config=best.config, samples_per_s=best.samples_per_s),
        baseline=replace(
            run.baseline,
            config=ranked[0].config,
            samples_per_s=ranked[0].samples_per_s,
            data_wait_share=ranked[0].data_wait_share,
        ),
    )
