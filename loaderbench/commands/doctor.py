"""`loaderbench doctor`: the machine as a loader sees it, each line ok, warn or bad with what to do."""

from __future__ import annotations

import sys
from dataclasses import replace


def doctor() -> None:
    """Check this machine for problems, and print fixes."""
    from loaderbench.environment.checkup import check_machine, look_at_packages
    from loaderbench.errors import MissingError
    from loaderbench.monitors import count_gpus

    bad = []
    packages = replace(look_at_packages(), gpus_of_driver=count_gpus())
    for check in check_machine(packages):
        print(f"{check.state:<5} {check.name}: {check.said}")
        if check.fix:
            print(f"      {check.fix}")
        sys.stdout.flush()
        bad += [check.name] if check.state == "bad" else []
    if bad:
        raise MissingError(f"must be fixed before a loader can be measured: {', '.join(bad)}")
