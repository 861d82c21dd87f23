"""The main process creates, draws or changes batches itself, and that work is serialized.

Triggers when the main process is the limit.

What it does: moves the work into the dataset, into `collate_fn`, or into a sampler drawn in advance.

How to confirm: profile again; CPU use of the main process falls.
"""

from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="move_into_workers",
    title="Move work from the main process into the workers",
    applies=lambda found: found.named(stages={"main_process"}),
    code="""loader = DataLoader(dataset, sampler=list_of_indices, collate_fn=collate_and_process, num_workers=2)
""",
)
