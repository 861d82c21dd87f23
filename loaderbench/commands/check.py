"""`loaderbench check`: print the plan of `run`, without measuring or importing anything that the suite names."""

from __future__ import annotations

import sys

from loaderbench.commands.options import Axes, Budget, Data, Rounds, Strategy, SuiteFile


def check(
    suite: SuiteFile,
    data: Data = None,
    axes: Axes = None,
    strategy: Strategy = None,
    rounds: Rounds = None,
    budget: Budget = None,
) -> None:
    """Validate a suite and print its plan, without measuring."""
    from loaderbench.commands.outputs import said_if_slow
    from loaderbench.commands.overrides import load_with_flags
    from loaderbench.commands.progress import about_how_long, describe_plan
    from loaderbench.consumers import consumer_of, describe_demand, resolve_consumer
    from loaderbench.environment import cpus_allotted
    from loaderbench.errors import printable
    from loaderbench.loaders import backends_of, check_installed
    from loaderbench.monitors import count_gpus
    from loaderbench.plan import LEFT_OUT, make_plan
    from loaderbench.records import config_name, format_scalar
    from loaderbench.session.conditions import needs_gpu
    from loaderbench.session.inputs import described

    measure = {"strategy": strategy, "rounds": rounds, "budget": budget}
    loaded = load_with_flags(suite, data=data, axes=axes or [], measure=measure)
    for said in loaded.warnings:
        print(f"Warning: {said}", file=sys.stderr)
    gpus, cpus = count_gpus(), cpus_allotted()
    check_installed(backends_of(loaded.suite.loader, loaded.suite.sweep) | backends_of(loaded.suite.baseline, {}))
    with loaded.saying_where(), said_if_slow("Listing the dataset's files"):
        what = described(loaded)
    accelerator = gpus > 0 or needs_gpu(loaded.suite)  # if the suite needs a GPU, plan for a machine with one
    consumer = resolve_consumer(loaded.suite.consumer, accelerator=accelerator)
    plan = make_plan(loaded.suite, cpus_allotted=cpus, accelerator=accelerator, consumer=consumer)
    print(printable(f"{loaded.suite.name}: {what}"))
    print(f"Available CPUs: {cpus:g}; GPUs: {gpus or 'none'}; consumer: {consumer}")
    if accelerator and not gpus:
        print("This suite needs a GPU: `run` works only on a machine that has one")
    chosen = consumer_of(loaded.suite.consumer, consumer)
    if said := chosen.describe():
        print(said)
    demand = chosen.assumed_demand(loaded.folder)
    if demand is not None:
        print(describe_demand(demand))
        if demand.address:
            print(f"  source: {demand.address}")
    for axis, values in plan.axes.items():
        why = f" ({plan.collapsed[axis]})" if axis in plan.collapsed else ""
        print(printable(f"  {axis}: {', '.join(format_scalar(value) for value in values)}{why}"))
    if LEFT_OUT in plan.collapsed:
        print(printable(f"Left out: {plan.collapsed[LEFT_OUT]}"))
    print(describe_plan(plan))
    if plan.budget_s is not None:
        print(f"Time limit: {about_how_long(plan.budget_s)} (measure.budget)")
    for config in plan.configurations:
        print(printable(f"  {config_name(config)}{'  (baseline)' if config == plan.baseline else ''}"))
