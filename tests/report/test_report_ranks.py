"""Ranks of a distributed training in a run and on its page."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
import run_profiles as profiles
from blocks import section, within
from run_factory import trial, typical
from run_hostile import HOSTILE

from loaderbench.conclusion import conclude
from loaderbench.diagnosis.ranks import storage_evidence
from loaderbench.recorder.ranks import NOT_TIMED, RankRun, merge_ranks
from loaderbench.records import Config, Limit, MachineUse, RankReadings, Readings, RunRecord, TimelinePoint
from loaderbench.records.words import SENT_BY_RANK_0
from loaderbench.report.document import build_document
from loaderbench.report.html import render_html
from loaderbench.report.model import Chart, Paragraph, Table
from loaderbench.report.sections.ranks import MOST_ROWS
from loaderbench.report.sections.step import step
from loaderbench.report.view import View
from loaderbench.store import read_run, run_json

ONE_SLOW = (0.02, 0.01, 0.6, 0.03)


def test_the_trial_of_the_slowest_rank_is_the_one_that_the_run_is_about() -> None:
    run = profiles.of_ranks(ONE_SLOW)
    assert [(trial.rank, trial.role, trial.id) for trial in run.trials] == [
        (2, "profile", "train"),
        (0, "rank", "rank0"),
        (1, "rank", "rank1"),
        (3, "rank", "rank3"),
    ]
    assert {trial.not_measured["rank_wait_share"] for trial in run.trials} == {NOT_TIMED}
    assert [configuration.trials for configuration in run.configurations] == [("train",)]


def test_each_rank_keeps_its_own_verdict_and_one_is_that_of_the_training() -> None:
    run = profiles.of_ranks(ONE_SLOW)
    assert [(one.rank, one.data_wait_share) for one in run.ranks] == list(enumerate(ONE_SLOW))
    assert [one.verdict.bound for one in run.ranks] == ["compute", "compute", "input", "compute"]
    assert (run.verdict.rank, run.verdict.bound) == (2, "input")
    assert run.verdict.headline.startswith("rank 2 holds back the other 3 ranks: ")
    assert run.ranks[2].verdict.headline == run.verdict.headline.partition(": ")[2]


def test_ranks_are_read_again_as_they_were_written(tmp_path: Path) -> None:
    run = profiles.of_ranks(ONE_SLOW, hosts=("a", "b"))
    (tmp_path / "run.json").write_text(run_json(run))
    assert read_run(tmp_path).ranks == run.ranks


def test_a_profile_of_one_process_has_no_ranks() -> None:
    assert profiles.untraced().ranks == ()
    assert section(build_document(profiles.untraced(), ()), "ranks") is None


@pytest.mark.parametrize("count", [2, MOST_ROWS])
def test_the_table_has_a_row_for_each_rank(count: int) -> None:
    run = profiles.of_ranks([0.02] * (count - 1) + [0.6], hosts=("a", "b"))
    table = next(one for one in within(build_document(run, ()), "ranks", Table) if one.caption == "Ranks")
    assert [row.cells[0].text for row in table.rows] == [str(rank) for rank in range(count)]
    assert [cell.text for cell in table.rows[1].cells[1:4]] == ["b", "512", "60%" if count == 2 else "2.0%"]


def test_each_bar_is_the_step_of_a_rank() -> None:
    run = profiles.of_ranks(ONE_SLOW, hosts=("a", HOSTILE))
    (chart,) = within(build_document(run, ()), "ranks", Chart)
    own, rest = chart.figures[0]["data"]  # no rank's wait for the others is known
    assert (own["x"], rest["x"]) == ([2.0, 1.0, 60.0, 3.0], [98.0, 99.0, 40.0, 97.0])
    assert own["y"][0] == "rank 0 on a"
    assert "<" not in "".join(own["y"])


@pytest.mark.parametrize("is_estimated", [False, True])
def test_an_estimate_of_the_waits_for_other_ranks_is_called_one(is_estimated: bool) -> None:
    run = profiles.of_ranks(ONE_SLOW)
    ranks = tuple(replace(one, rank_wait_share=0.3, is_wait_estimated=is_estimated) for one in run.ranks)
    (chart,) = within(build_document(replace(run, ranks=ranks), ()), "ranks", Chart)
    assert ("Waits for other ranks are estimated" in chart.caption) is is_estimated


def test_of_very_many_ranks_the_page_has_the_spread_and_the_slowest() -> None:
    run = profiles.of_ranks([rank / 1024 / 20 for rank in range(1023)] + [0.6])
    document = build_document(run, ())
    (table,) = within(document, "ranks", Table)
    assert [row.cells[0].text for row in table.rows] == ["1023", *(str(rank) for rank in range(1022, 1013, -1))]
    (spread,) = within(document, "ranks", Paragraph)
    assert spread.text.text == "Data wait of 1024 ranks: 0%, 1.2%, 2.5%, 3.7%, 60% (least, quartiles, most)"


def allowed(run: RankRun, cpus: str) -> RankRun:
    """The same rank, allowed to use these CPUs."""
    environment = replace(run.measured.environment, cpus_allowed=cpus)
    return replace(run, measured=replace(run.measured, environment=environment))


@pytest.mark.parametrize(
    ("seen", "cpus", "own"),
    [
        (1, ("0-63", "0-63"), 6.0),
        (2, ("0-63", "0-63"), 3.0),
        (1, ("0-7", "0-7"), 6.0),  # part of a machine, such as a job of Slurm has
        (1, ("0-7", "8-15"), 3.0),
    ],
)
def test_ranks_that_no_launcher_started_share_the_cpus_that_they_may_use(
    seen: int, cpus: tuple[str, str], own: float
) -> None:
    use = MachineUse(cpus=8, own_cpus=3.0, busy_cpus=6.5, throttled_share=None, ranks=seen)
    found = [profiles.rank_run(rank, 0.5, host).with_machine(use) for rank, host in enumerate("aab")]
    runs = [allowed(run, own) for run, own in zip(found, (*cpus, cpus[0]), strict=True)]
    machines = {trial.rank: trial.machine for trial in merge_ranks(runs)[0].trials}
    assert {rank: use.own_cpus for rank, use in machines.items() if use} == {0: own, 1: own, 2: 3.0}
    ranks = 2 if own == 6.0 else seen
    assert {rank: use.ranks for rank, use in machines.items() if use} == {0: ranks, 1: ranks, 2: seen}


def test_machines_that_differ_are_named_in_the_notes() -> None:
    small, large = (profiles.rank_run(rank, 0.02, host) for rank, host in enumerate("ab"))
    environment = replace(large.measured.environment, cpus_allotted=64.0)
    large = replace(large, measured=replace(large.measured, environment=environment))
    measured, _ = merge_ranks([small, large])
    assert measured.notes == ("machines differ in CPUs: 8 on a, 64 on b",)
    assert merge_ranks([small])[0].notes == ()


def test_names_of_hosts_stay_text() -> None:
    page = render_html(build_document(profiles.of_ranks(ONE_SLOW, hosts=(HOSTILE,)), ()))
    assert HOSTILE not in re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)


def in_ranks(rates: tuple[float, ...]) -> RunRecord:
    """A sweep over ranks, in which each of two ranks has a rate of its own."""
    run = typical()
    configs: tuple[Config, ...] = tuple({"ranks": ranks, "num_workers": 1} for ranks in (1, 2))
    each = [RankReadings(rank=rank, samples_per_s=rate, data_wait_share=0.5) for rank, rate in enumerate(rates)]
    trials = tuple(
        replace(
            trial(config, round_, place, sum(rates[: place + 1])), ranks=tuple(each[: place + 1]), slowest_rank=place
        )
        for round_ in (1, 2, 3)
        for place, config in enumerate(configs)
    )
    plan = replace(run.plan, axes={"ranks": [1, 2], "num_workers": [1]}, configs=configs, baseline=configs[1])
    return conclude(replace(run, trials=trials, plan=plan))


def test_a_sweep_over_ranks_is_judged_by_the_most_ranks_though_fewer_be_faster() -> None:
    run = in_ranks((300.0, -80.0))
    assert run.best
    assert run.best.config["ranks"] == 2
    assert run.best.why_this_one.endswith(" (of configs with ranks=2)")
    assert [(found.rank, found.tied_with_best) for found in run.configurations] == [(None, False), (1, True)]


def test_a_sweep_over_ranks_shows_a_curve_of_all_and_a_table_of_each() -> None:
    run = in_ranks((120.0, 80.0))
    page = build_document(run)
    assert [(one.rank, one.samples_per_s) for one in run.ranks] == [(0, 120.0), (1, 80.0)]
    charts = [block for block in section(page, "scaling").blocks if isinstance(block, Chart)]
    assert charts[0].label == "Samples/s vs ranks"
    tables = [block for block in section(page, "ranks").blocks if isinstance(block, Table)]
    assert [column.label for column in tables[0].columns] == ["Rank", "Samples/s", "Data wait", "Verdict"]


def test_the_target_of_ranks_with_an_emulated_gpu_each_is_that_of_all() -> None:
    run = in_ranks((120.0, 80.0))
    assert run.ceiling
    assert run.ceiling.samples_per_s == 2_000
    assert "1,000 in each of 2 ranks" in " ".join(run.verdict.evidence)


def test_ranks_without_batches_or_with_other_data_are_named_in_the_notes() -> None:
    runs = [profiles.rank_run(rank, 0.02, "a") for rank in range(3)]
    empty = replace(runs[1].measured.trials[0], status="failed")
    lengths = (640, 320, 640)
    runs = [
        replace(one, measured=replace(one.measured, dataset=replace(one.measured.dataset, files=length)))
        for one, length in zip(runs, lengths, strict=True)
    ]
    runs[1] = replace(runs[1], measured=replace(runs[1].measured, trials=(empty,)))
    assert merge_ranks(runs, 12)[0].notes == (
        "no batch was counted in rank 1: does the sampler give each rank the same number of samples?",
        "this report has 3 of 12 ranks; ranks 3, 4, 5, 6, 7, 8, 9, 10 and 1 more took no batches of this loader, "
        "ran on another machine, or recorded nothing",
        "datasets differ: 320 samples in rank 1, 640 in rank 0",
    )
    assert merge_ranks(runs[2:], 3)[0].notes == (
        "this report has 1 of 3 ranks; ranks 0, 1 took no batches of this loader, ran on another machine, "
        "or recorded nothing",
    )
    assert merge_ranks(runs[2:])[0].notes == ()


def reading(rank: int, host: str, bytes_per_s: float | None) -> RankRun:
    one = profiles.rank_run(rank, 0.6, host)
    own = one.measured.trials[0]
    assert own.workers is not None
    workers = replace(own.workers, read_bytes_per_s=bytes_per_s)
    return replace(one, measured=replace(one.measured, trials=(replace(own, workers=workers),)))


def test_reads_are_summed_for_each_host_and_for_all() -> None:
    run = conclude(merge_ranks([reading(0, "a", 2**20), reading(1, "a", 2**20), reading(2, "b", 3 * 2**20)])[0])
    assert [(one.host, one.ranks, one.read_bytes_per_s) for one in run.hosts] == [("a", 2, 2**21), ("b", 1, 3 * 2**20)]
    assert run.all_hosts is not None
    assert (run.all_hosts.ranks, run.all_hosts.read_bytes_per_s) == (3, 5 * 2**20)
    table = within(build_document(run, ()), "ranks", Table)[-1]
    assert [[cell.text for cell in row.cells][-1] for row in table.rows] == ["2.00 MiB/s", "3.00 MiB/s", "5.00 MiB/s"]


def test_an_unknown_rank_leaves_the_reads_of_its_host_and_of_all_unknown() -> None:
    run = conclude(merge_ranks([reading(0, "a", None), reading(1, "b", 2**20)])[0])
    assert [one.read_bytes_per_s for one in run.hosts] == [None, 2**20]
    assert run.all_hosts is not None
    assert run.all_hosts.read_bytes_per_s is None
    assert run.all_hosts.not_measured == {"read_bytes_per_s": "the reads of a rank's processes are unknown"}


def test_one_host_has_no_table_of_hosts() -> None:
    run = profiles.of_ranks(ONE_SLOW)
    assert (run.hosts, run.all_hosts) == ((), None)
    assert [table.caption for table in within(build_document(run, ()), "ranks", Table)] == ["Ranks"]


@pytest.mark.parametrize(("limit", "said"), [("storage_latency", True), ("cpu", False)])
def test_where_storage_is_the_limit_the_verdict_says_what_all_hosts_read(limit: Limit, said: bool) -> None:
    run = conclude(merge_ranks([reading(0, "a", 2**20), reading(1, "b", 2**20)])[0])
    found = storage_evidence(replace(run.verdict, limit=limit), run.hosts)
    line = "Reads: 2 MiB/s on 2 hosts together: the load on their storage, if shared"
    assert (str(found) if found else "") == (line if said else "")


def test_the_step_of_a_trial_with_ranks_is_that_of_its_slowest() -> None:
    run = in_ranks((120.0, 80.0))
    one = next(trial for trial in run.trials if len(trial.ranks) == 2)
    slowest = RankReadings(rank=1, samples_per_s=80.0, data_wait_share=0.5, batches=40, steady_s=4.0)
    trial_ = replace(one, batches=160, steady_s=4.0, data_wait_share=0.5, ranks=(one.ranks[0], slowest))
    (table,) = step(trial_).tables
    assert table.caption == "Mean time per step of rank 1, 40 batches (80.0 samples/s)"
    assert table.rows[0].cells[1].text == "50.0"
    readings = Readings([TimelinePoint(one.id, 0.1 * number, "data_wait_s", 0.05) for number in range(40)])
    assert not View(replace(run, trials=(trial_,)), readings).lacks_waits(trial_)


def test_ranks_without_a_consumer_have_neither_data_waits_nor_a_chart() -> None:
    document = build_document(replace(in_ranks((120.0, 80.0)), consumer="none"))
    assert within(document, "ranks", Chart) == []
    (table,) = within(document, "ranks", Table)
    assert [column.label for column in table.columns] == ["Rank", "Samples/s", "Verdict"]


def test_many_ranks_without_a_consumer_are_those_with_the_lowest_rates() -> None:
    run = profiles.of_ranks([0.02] * 12)
    ranks = tuple(replace(one, samples_per_s=100.0 - one.rank) for one in run.ranks)
    table, _ = within(build_document(replace(run, consumer="none", ranks=ranks)), "ranks", Table)
    assert table.caption == "Slowest ranks"
    assert [row.cells[0].text for row in table.rows] == [str(rank) for rank in range(11, 1, -1)]


def with_unknown_waits(run: RunRecord, *unknown: int) -> RunRecord:
    """The run, in which the data waits of these ranks are not known."""
    reasons = {"data_wait_share": SENT_BY_RANK_0}
    return replace(
        run,
        ranks=tuple(
            replace(one, data_wait_share=None, not_measured=reasons) if one.rank in unknown else one
            for one in run.ranks
        ),
    )


def test_a_rank_with_an_unknown_data_wait_has_its_reason_and_no_bar() -> None:
    document = build_document(with_unknown_waits(profiles.of_ranks(ONE_SLOW), 1, 3))
    (chart,) = within(document, "ranks", Chart)
    assert all(trace["y"] == ["rank 0", "rank 2"] for trace in chart.figures[0]["data"])
    (table,) = within(document, "ranks", Table)
    (place,) = [i for i, column in enumerate(table.columns) if column.label == "Data wait"]
    known = [row.cells[place].text for row in table.rows]
    assert known == ["2.0%", f"not measured: {SENT_BY_RANK_0}", "60%", f"not measured: {SENT_BY_RANK_0}"]


def test_unknown_data_waits_are_in_no_quartile() -> None:
    run = profiles.of_ranks([0.1] * 50 + [0.6] * 50)
    (spread,) = within(build_document(with_unknown_waits(run, *range(50))), "ranks", Paragraph)
    assert spread.text.text == "Data wait of 50 ranks: 60%, 60%, 60%, 60%, 60% (least, quartiles, most)"
    of_none = build_document(with_unknown_waits(run, *range(100)))
    assert within(of_none, "ranks", Paragraph) == within(of_none, "ranks", Chart) == []
