"""A Python thread of the training process holds the GIL while finished batches wait.

Triggers when worker-to-main IPC is the bottleneck, and another Python thread uses a CPU for most of the time.

What it does: moves that thread's work to a process of its own. Compiled code that releases the GIL can stay.

How to confirm: profile again; worker-to-main IPC is no longer the bottleneck.
"""

from loaderbench.diagnosis.limits import waits_for_the_gil
from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="background_thread",
    title="Move the busy thread to a process of its own",
    title_for=lambda found: f"Move the thread {found.facts.busy_thread} to a process of its own",
    effort=1,
    applies=lambda found: found.named(limits={"lock"}, stages={"transport"}) and waits_for_the_gil(found.facts),
    code="""import multiprocessing

multiprocessing.Process(target=work_of_the_thread, daemon=True).start()  # instead of threading.Thread
""",
)
