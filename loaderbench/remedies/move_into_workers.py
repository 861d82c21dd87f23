"""The main process itself makes, draws or changes batches, one after the other.

Fires where the main process is the limit. The change is in the user's code.
"""

from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="move_into_workers",
    title="Move this work out of the main process: into the dataset, collate_fn, or a sampler that is drawn beforehand",
    applies=lambda found: found.named(stages={"main_process"}),
    code="""loader = DataLoader(dataset, sampler=list_of_indices, collate_fn=collate_and_process, num_workers=2)
""",
)
