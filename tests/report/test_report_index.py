"""The list of runs: right numbers, harmless strings, and never a run or somebody's file lost for it."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
import run_factory as runs
import run_profiles as profiles
from run_folders import put
from run_hostile import hostile

from loaderbench.records import Interval, RunRecord, to_dict
from loaderbench.report.document import build_document
from loaderbench.report.index import IndexDocument, build_index, render_index
from loaderbench.report.sparkline import HEIGHT, MOST_POINTS, WIDTH, sparkline
from loaderbench.store import run_json
from loaderbench.store.run_list import MOST_RUNS, list_runs

VOID = {"meta", "link", "polygon", "polyline", "circle"}


def with_rate(est: float, name: str = "images") -> RunRecord:
    run = runs.typical()
    assert run.best
    return replace(run, name=name, best=replace(run.best, samples_per_s=Interval(est, est * 0.97, est * 1.03)))


def index(parent: Path) -> IndexDocument:
    return build_index(list_runs(parent), "0.1.0")


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert tag in VOID or self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data if "style" not in self.open else ""

    def all(self, tag: str, name: str) -> list[str]:
        return [value for found, key, value in self.attributes if (found, key) == (tag, name)]


def page(parent: Path) -> Page:
    return Page(render_index(index(parent)))


def test_runs_stand_by_suite_and_the_newest_first(tmp_path: Path) -> None:
    for day, name in ((1, "images"), (5, "cold"), (3, "images"), (2, "cold")):
        put(tmp_path, f"r{day}", with_rate(100.0 * day, name), day)
    found = index(tmp_path)

    assert [suite.name.text for suite in found.suites] == ["cold", "images"]
    assert [row.folder.text for suite in found.suites for row in suite.rows] == ["r5", "r2", "r3", "r1"]
    assert found.suites[1].latest.when == "2026-03-03 14:03 UTC"
    assert found.summary == "4 runs of 2 suites, newest first"


def test_a_row_says_what_the_run_found(tmp_path: Path) -> None:
    put(tmp_path, "r", runs.typical())
    row = index(tmp_path).suites[0].latest

    assert row.rate.text == "844 (819\u2013869)"
    assert row.best
    assert (row.best.text, row.best.title) == (
        "batch_size=128 num_workers=2",
        "batch_size=128 num_workers=2 pin_memory=false",
    )
    assert row.headline.text.startswith("The consumer waits for data 79%")
    assert (row.state.label, row.state.hint) == ("complete", "8 of 8 configs measured")
    assert row.href == "r/report.html"


def test_a_long_verdict_is_shortened_and_whole_in_its_title(tmp_path: Path) -> None:
    run = runs.typical()
    put(tmp_path, "r", replace(run, verdict=replace(run.verdict, headline="word " * 80)))
    row = index(tmp_path).suites[0].latest

    assert len(row.headline.text) <= 140
    assert row.headline.title
    assert row.headline.title.strip() == ("word " * 80).strip()


@pytest.mark.parametrize(
    ("make", "state", "rate"),
    [
        (runs.all_failed, "failed", "not measured: every trial failed"),
        (runs.interrupted, "partial", "844 (819\u2013869)"),
        (runs.without_best, "complete", "not measured: fewer than three rounds"),
        (profiles.traced, "complete", "512"),
        (profiles.nothing_measured, "failed", "not measured"),
        (profiles.attached, "complete", "not measured: batches are not visible from outside the process"),
        (runs.one_round, "complete", "844 (n = 1)"),
    ],
)
def test_every_state_has_its_word_and_what_is_missing_its_reason(
    tmp_path: Path, make: object, state: str, rate: str
) -> None:
    assert callable(make)
    put(tmp_path, "r", make())
    row = index(tmp_path).suites[0].latest

    assert row.state.label == state
    assert row.rate.text.startswith(rate)
    assert row.rate.main != "0"


def first_round_failed() -> RunRecord:
    run = runs.typical()
    return replace(
        run, trials=tuple(replace(trial, status="failed") if trial.round == 1 else trial for trial in run.trials)
    )


@pytest.mark.parametrize(
    "make",
    [
        *(runs.typical, runs.partly_failed, runs.all_failed, runs.interrupted, runs.one_trial, first_round_failed),
        *(profiles.traced, profiles.nothing_measured, profiles.attached),
    ],
)
def test_a_run_has_one_state_on_its_page_and_in_the_list(make: Callable[[], RunRecord], tmp_path: Path) -> None:
    run = make()
    put(tmp_path, "r", run)
    listed, shown = index(tmp_path).suites[0].latest.state, build_document(run).state

    assert (shown.tone, shown.label.partition(":")[0]) == (listed.tone, listed.label)


def test_a_profile_and_a_sweep_of_one_name_are_two_things(tmp_path: Path) -> None:
    put(tmp_path, "a", with_rate(100, "train"))
    put(tmp_path, "b", profiles.traced(), 2)

    assert [(suite.name.text, suite.kind) for suite in index(tmp_path).suites] == [
        ("train", "profile"),
        ("train", None),
    ]


def test_a_line_says_its_numbers_and_leaves_a_gap_for_what_is_missing() -> None:
    rates = [Interval(405, 400, 410), Interval(512, None, None), None, Interval(1234, 1200, 1300)]
    drawn = sparkline(rates)

    assert drawn
    assert drawn.label == "Samples/s of 4 runs, oldest first: 405, 512, not measured, 1,234"
    assert drawn.caption == "405\u20131,234 samples/s"
    assert len(drawn.lines) == len(drawn.dots) == 1
    xs = [float(point.split(",")[0]) for line in drawn.lines for point in line.split()] + [x for x, _ in drawn.dots]
    assert xs == sorted(xs)
    assert drawn.last == drawn.dots[-1]


@pytest.mark.parametrize("rates", [[0.0, 0.0], [5.0, 5.0], [1e-9, 1e12], [1, 2, 3]])
def test_a_line_stays_within_its_frame(rates: list[float]) -> None:
    drawn = sparkline([Interval(rate, rate * 0.5, rate * 1.5) for rate in rates])
    assert drawn
    points = [tuple(map(float, p.split(","))) for part in (*drawn.lines, *drawn.bands) for p in part.split()]

    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in points)


def test_noise_does_not_look_like_a_change() -> None:
    drawn = sparkline([Interval(rate, None, None) for rate in (100.0, 101.0)])
    assert drawn
    (_, first), (_, second) = (tuple(map(float, point.split(","))) for point in drawn.lines[0].split())

    assert 0 < first - second < HEIGHT / 10


def test_many_runs_are_drawn_from_the_newest(tmp_path: Path) -> None:
    drawn = sparkline([Interval(float(i + 1), None, None) for i in range(100)])

    assert drawn
    assert drawn.label.startswith(f"Samples/s of the newest {MOST_POINTS} of 100 runs")
    assert drawn.label.endswith("99.0, 100")
    assert "1.00," not in drawn.label


def test_one_run_has_no_line_and_no_navigation(tmp_path: Path) -> None:
    put(tmp_path, "r", runs.typical())
    found = page(tmp_path)

    assert "svg" not in found.tags
    assert "nav" not in found.tags
    assert "1 run of 1 suite" in found.text
    assert sparkline([None, Interval(1, None, None)]) is sparkline([]) is None


def test_an_empty_folder_says_so(tmp_path: Path) -> None:
    assert "No runs in this folder." in page(tmp_path).text


NAMES = ["<img src=x onerror=alert(1)>", "javascript:alert(1)", "a b#c?d%2e&'\"", "x" * 200, "\u202eevil", "new\nline"]


@pytest.mark.parametrize("name", NAMES)
def test_hostile_names_are_text_and_their_links_lead_to_the_page(tmp_path: Path, name: str) -> None:
    from urllib.parse import unquote

    put(tmp_path, name, replace(hostile(), trials=()))
    put(tmp_path, "broken", runs.typical())
    (tmp_path / "broken" / "run.json").write_text("{")
    found = page(tmp_path)

    assert found.open == []
    assert not {"script", "img"} & set(found.tags)
    assert not [key for _, key, _ in found.attributes if key.startswith("on")]
    links = [link for link in found.all("a", "href") if not link.startswith("#")]
    assert {unquote(link) for link in links} == {f"{name}/report.html", "broken/report.html"}
    assert all(link.split("/")[0].isascii() and ":" not in link and link.count("/") == 1 for link in links)
    assert "\u202e" not in found.text


@pytest.mark.skipif(os.name != "posix", reason="other systems have no such names")
def test_a_folder_whose_name_is_no_unicode_is_listed_and_linked(tmp_path: Path) -> None:
    try:
        put(tmp_path, os.fsdecode(b"caf\xe9"), runs.typical())
    except OSError:
        pytest.skip("this file system has no such names")
    found = page(tmp_path)

    assert "caf%E9/report.html" in found.all("a", "href")


def test_a_run_without_a_page_has_no_link(tmp_path: Path) -> None:
    put(tmp_path, "r", runs.typical(), page=False)

    assert page(tmp_path).all("a", "href") == []


def test_the_page_asks_for_nothing_and_has_no_script(tmp_path: Path) -> None:
    put(tmp_path, "r", runs.typical())
    found = page(tmp_path)

    assert found.all("link", "href") == ["data:,"]
    assert "script" not in found.tags
    assert any(value.startswith("default-src 'none'") for value in found.all("meta", "content"))
    assert "script-src" not in str(found.attributes)


def sweep_with(**changes: object) -> str:
    data = {**json.loads(run_json(runs.typical())), **changes}
    return json.dumps(data)


BROKEN = [
    ("", "is not valid JSON"),
    ("{", "is not valid JSON"),
    ("[]", "not a run of loaderbench; expected a run folder or its run.json"),
    ('{"schema_version": 99}', "schema_version is 99"),
    ('{"schema_version": 1}', "field required"),
    ("[" * 100_000, "is not valid JSON"),
    ('{"schema_version": ' + "9" * 5000 + "}", ""),
    (sweep_with(best=7), "best"),
    (sweep_with(name=None), "name"),
    (sweep_with(kind="other"), "kind"),
    ("\x00\xff", ""),
]


@pytest.mark.parametrize(("text", "reason"), BROKEN)
def test_what_cannot_be_read_is_listed_with_the_reason_in_one_line(tmp_path: Path, text: str, reason: str) -> None:
    put(tmp_path, "good", runs.typical())
    (put(tmp_path, "bad", runs.typical()) / "run.json").write_text(text, encoding="latin-1")
    found = index(tmp_path)

    assert [row.folder.text for row in found.unread] == ["bad"]
    assert reason in found.unread[0].reason.text
    assert "\n" not in found.unread[0].reason.text
    assert [row.folder.text for row in found.suites[0].rows] == ["good"]


def test_a_run_that_ends_too_early_is_not_taken_for_whole(tmp_path: Path) -> None:
    folder = put(tmp_path, "r", runs.typical())
    text = (folder / "run.json").read_text()
    for end in (len(text) // 2, len(text) - 30):
        (folder / "run.json").write_text(text[:end])
        assert len(index(tmp_path).unread) == 1


@pytest.mark.parametrize("text", [json.dumps, lambda data: json.dumps(data, indent=4)])
def test_a_run_that_another_program_wrote_out_again_reads_the_same(tmp_path: Path, text: object) -> None:
    assert callable(text)
    folder = put(tmp_path, "r", runs.typical())
    before = list_runs(tmp_path)
    (folder / "run.json").write_text(text(json.loads((folder / "run.json").read_text())))

    assert list_runs(tmp_path) == before


def test_what_is_no_run_is_not_listed_and_what_cannot_be_looked_at_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "examples").mkdir()
    (tmp_path / "notes.txt").touch()
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "measuring").mkdir()
    (tmp_path / "measuring" / "trials.jsonl").touch()
    (tmp_path / "folder" / "run.json").mkdir(parents=True)
    if hasattr(os, "mkfifo"):
        (tmp_path / "pipe").mkdir()
        os.mkfifo(tmp_path / "pipe" / "run.json")
    unread = {row.folder.text: row.reason.text for row in index(tmp_path).unread}

    assert set(unread) - {"pipe"} == {"measuring", "folder"}
    assert "the run is in progress" in unread["measuring"]
    assert all("not a file" in reason for name, reason in unread.items() if name != "measuring")


@pytest.mark.parametrize("est", ["1e400", "NaN", "1e300", "-5"])
def test_a_rate_that_is_no_rate_is_not_shown(tmp_path: Path, est: str) -> None:
    folder = put(tmp_path, "r", with_rate(777.5))
    text = (folder / "run.json").read_text()
    (folder / "run.json").write_text(text.replace('"est": 777.5', f'"est": {est}'))
    row = index(tmp_path).suites[0].latest

    assert row.rate.missing
    assert row.rate.main == "not measured"


@pytest.mark.parametrize("when", ["", "yesterday", "0001-01-01T00:00:00+23:00", "9999-12-31T23:00:00-23:00"])
def test_a_date_that_is_none_stands_last(tmp_path: Path, when: str) -> None:
    put(tmp_path, "dated", runs.typical())
    odd = to_dict(replace(runs.typical(), started_at=when))
    (put(tmp_path, "odd", runs.typical()) / "run.json").write_text(json.dumps(odd))

    assert [(row.folder.text, row.when) for row in index(tmp_path).suites[0].rows][1] == ("odd", "no date")


def test_the_newest_200_are_shown_by_the_time_in_their_names(tmp_path: Path) -> None:
    text = run_json(runs.one_trial())
    for number in range(MOST_RUNS + 3):
        folder = tmp_path / f"images-20260312T{number // 60:02d}{number % 60:02d}00Z"
        folder.mkdir()
        (folder / "run.json").write_text(text)
    found = index(tmp_path)

    assert sum(len(suite.rows) for suite in found.suites) == MOST_RUNS
    assert "images-20260312T000200Z" not in {row.folder.text for row in found.suites[0].rows}
    assert found.note == "Showing the newest 200; 3 older runs not listed."
