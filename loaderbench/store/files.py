"""What lies in a run folder."""

RUN_FILE, TRIALS_FILE, TIMELINE_FILE, PAGE_FILE = "run.json", "trials.jsonl", "timeline.parquet", "report.html"
TIMELINE_COLUMNS = ("trial", "t_s", "metric", "value")
