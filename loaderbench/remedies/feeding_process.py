"""Workers wait for data that another process sends through a queue or a pipe.

Triggers when the loading processes spend most of their time in Python's multiprocessing, blocked, while CPUs are idle.

What it does: makes the data in the workers, or in more processes.

How to confirm: profile again; less of the loading time is in the call that receives data.
"""

from loaderbench.diagnosis.requirements import waits_for_a_process
from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="feeding_process",
    title="Move data production to the workers or to more processes",
    applies=lambda found: found.named(limits={"lock"}) and waits_for_a_process(found.facts),
    code="""import multiprocessing

for _ in range(processes):  # one process for each CPU that is idle
    multiprocessing.Process(target=fill, args=(queue,), daemon=True).start()
""",
)
