"""Workers, or threads of one process, wait for one another at a lock.

Fires where a lock is the limit, within the dataset. The change is in the user's code.
"""

from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="release_lock",
    title="Hold the lock for less: open one handle per worker, and compute outside of the lock",
    applies=lambda found: found.named(limits={"lock"}) and found.verdict.stage not in ("main_process", "transport"),
    code="""def worker_init_fn(_):
    info = torch.utils.data.get_worker_info()
    info.dataset.file = open(info.dataset.path, "rb")  # a handle of its own, instead of one behind a lock
""",
)
