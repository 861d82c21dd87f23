"""A few slow samples take most of the loading time.

Triggers when stragglers are the bottleneck.

What it does: repairs the slowest samples or drops them; the report lists them.

How to confirm: measure again; the slowest samples take about as long as the others.
"""

from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="slow_samples",
    title="Repair or drop the slowest samples",
    applies=lambda found: found.named(stages={"stragglers"}),
    code="""import json

run = json.load(open("reports/RUN/run.json"))
config = (run["best"] or {}).get("config")  # of a sweep
trials = [trial for trial in run["trials"] if trial["sample_times"] and config in (None, trial["config"])]
for slow in trials[0]["sample_times"]["slowest"] if trials else ():
    print(slow["wall_s"], slow["index"], slow["path"])
""",
)
