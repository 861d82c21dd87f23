"""The runs of a folder in short, for a list of them."""

from loaderbench.run_list.listing import DEFAULT_FOLDER, MOST_RUNS, RunList, RunSummary, UnreadableRun, list_runs

__all__ = ["DEFAULT_FOLDER", "MOST_RUNS", "RunList", "RunSummary", "UnreadableRun", "list_runs"]
