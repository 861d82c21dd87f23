"""A few samples take so long that they are most of the work.

Fires where stragglers are the limit.
"""

from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="slow_samples",
    title="Repair the slowest samples, or leave them out",
    applies=lambda found: found.named(stages={"stragglers"}),
    code="""for slow in result.to_dict()["trials"][0]["sample_times"]["slowest"]:
    print(slow["wall_s"], slow["index"], slow["path"])
""",
)
