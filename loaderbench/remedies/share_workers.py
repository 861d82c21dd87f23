"""Some ranks load more slowly than others, which wait for them in each step.

Triggers when a rank with workers holds back other ranks, and the dataset is map-style.

What it does: on each machine, every worker loads for all ranks there. A rank with slower samples then gets more of
the workers' time. There are as many workers as before.

How to confirm: throughput of all ranks together rises.
"""

from loaderbench.loaders import AXIS, DEFAULT_BACKEND
from loaderbench.loaders.shared_batches import SHARE
from loaderbench.remedies.by_cause import CauseRemedy
from loaderbench.remedies.findings import Diagnosis


def _applies(found: Diagnosis) -> bool:
    is_in_workers = found.facts.workers > 0 and found.verdict.stage not in ("main_process", "transport")
    is_data_loader = (
        found.config.get(AXIS) in (None, DEFAULT_BACKEND) and not {"stream", "iterable"} & found.traits.keys()
    )
    return found.verdict.rank is not None and found.named() and is_in_workers and is_data_loader


REMEDY = CauseRemedy(
    id="share_workers",
    title="Share workers among the ranks of each machine",
    applies=_applies,
    change=lambda _: {SHARE: True},
    effort=1,
    costs=("Each worker holds the datasets of all ranks", "More batches wait in memory", "Batches are not pinned"),
    caveat="It helps only if other ranks of the same machine load faster. Dataset and collate_fn must be picklable",
    ends_contention=True,
)
