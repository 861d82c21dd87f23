"""The report as a comment on a pull request: it says what the page says, and no string in it acts."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
import run_factory as runs
import run_profiles as profiles
from markdown_it import MarkdownIt
from run_hostile import hostile, surrogates

from loaderbench.records import RunRecord, Trial
from loaderbench.report.document import build_document
from loaderbench.report.markdown import MOST_BYTES, code, fenced, inline, render_markdown, table

MAKERS = [runs.typical, runs.gpu_run, runs.all_failed, runs.partly_failed, runs.one_trial, runs.one_round]
MAKERS += [runs.interrupted, hostile, runs.without_best, surrogates]
MAKERS += [profiles.traced, profiles.untraced, profiles.generator, profiles.nothing_measured, profiles.hostile_profile]
OURS = {"h2", "h3", "p", "strong", "em", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "code", "pre",
        "br", "details", "summary", "span"}  # fmt: skip
EVIL = [
    "@octocat and @org/team",
    "#123 GH-123 owner/repo#123 https://github.com/o/r/issues/1 www.example.org a@b.org",
    "0123abc deadbeef1",
    "[link](https://example.org) ![image](x) [ref][1] [^1]",
    "<script>alert(1)</script> <img src=x onerror=alert(2)> <!-- x -->",
    "`code` ``more`` ```",
    "*em* **strong** _em_ __strong__ ~~gone~~",
    "a | b \\| c \\",
    "# heading",
    "- item",
    "+ item",
    "12. item",
    "1) item",
    "> quote",
    "---",
    "===",
    "- [ ] task",
    "    indented",
    "&lt; &#64;octocat &amp;",
    "$x^2$ $$y$$",
    "line\n\n# another\r\n| x |",
    ":tada: 10:30:45",
    "\\",
    "-",
    "``` python",
]


class Rendered(HTMLParser):
    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[tuple[bool, str]] = []
        rules = ["table", "strikethrough"]
        self.feed(MarkdownIt("commonmark", {"html": True}).enable(rules).render(markdown))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def handle_data(self, data: str) -> None:
        self.texts.append(("code" in self.open, data))

    @property
    def text(self) -> str:
        return "".join(text for _, text in self.texts).replace("\u200b", "")


def markdown(make: object) -> str:
    assert callable(make)
    return render_markdown(build_document(make()))


@pytest.mark.parametrize("evil", EVIL)
@pytest.mark.parametrize("frame", ["{}", "## {}", "- {}", "**{}**: x", "| a | b |\n| --- | --- |\n| {} | x |"])
def test_any_text_is_shown_as_it_is_and_nothing_else(evil: str, frame: str) -> None:
    shown = Rendered(frame.format(inline(evil)))

    assert set(shown.tags) <= {"p", "h2", "ul", "li", "strong", "table", "thead", "tbody", "tr", "th", "td", "span"}
    assert len([tag for tag in shown.tags if tag in ("h2", "li", "td")]) == {"#": 1, "-": 1, "|": 2}.get(frame[0], 0)
    assert " ".join(evil.split()) in shown.text


@pytest.mark.parametrize("evil", EVIL)
@pytest.mark.parametrize("frame", ["{}", "- {}", "| a | b |\n| --- | --- |\n| {} | x |"])
def test_code_holds_any_text(evil: str, frame: str) -> None:
    shown = Rendered(frame.format(code(evil)))

    assert shown.tags.count("code") == 1
    assert "".join(text for within, text in shown.texts if within) == " ".join(evil.split())
    assert shown.tags.count("td") == (2 if "|" in frame else 0)


@pytest.mark.parametrize("evil", [*EVIL, "```\nout\n````\nof it\n", "~~~", ""])
def test_a_fence_is_longer_than_any_within(evil: str) -> None:
    shown = Rendered(fenced(evil, "python"))

    assert shown.tags == ["pre", "code"]
    assert "".join(text for _, text in shown.texts).strip() == evil.replace("\r\n", "\n").strip()


@pytest.mark.parametrize("evil", EVIL)
def test_what_is_looked_for_after_rendering_is_parted(evil: str) -> None:
    written = "".join(text for _, text in Rendered(inline(evil)).texts)

    for sign in (r"@\w", r"#\d", r"GH-\d", r"://", r"www\.", r":tada:", r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}\b"):
        assert not re.search(sign, written)


def test_plain_words_and_numbers_stay_as_they_are() -> None:
    said = "212 samples/s (206\u2013218), 3.9\u00d7 and +35% at -2.1 of 1.40 GiB: r1-c02, 2026-03-12 14:03 UTC."

    assert inline(said) == said
    assert inline("+35%") == "+35%"
    assert inline("1.40 GiB") == "1.40 GiB"


def test_a_table_has_as_many_cells_in_each_row() -> None:
    assert table(["a", "b"], [False, True], [["1", "2"]]) == "| a | b |\n| --- | ---: |\n| 1 | 2 |"


@pytest.mark.parametrize("make", MAKERS)
def test_every_state_renders_with_our_elements_alone_and_stays_small(make: object) -> None:
    text = markdown(make)
    shown = Rendered(text)

    assert len(text.encode()) <= MOST_BYTES
    assert set(shown.tags) <= OURS
    assert shown.open == []
    assert {name for name, _ in shown.attributes} <= {"class", "style"}  # of fences and of numeric columns
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", text)
    assert text.startswith("## ")


def test_a_sweep_says_what_the_page_says() -> None:
    shown = Rendered(markdown(runs.typical))

    for expected in (
        "The consumer waits for data 79% of each step",
        "images: complete: 24 trials",
        "212 (206\u2013218)",
        "844 (819\u2013869)",
        "batch_size=32 num_workers=0 pin_memory=false",
        "Decode takes 2.1 ms",
        "Use two workers and a batch size of 128 (measured): 3.9\u00d7 vs baseline (3.7\u20134.1\u00d7)",
        "num_workers: 0 \u2192 2",
        "batch_size=128,",
        "\u2605 128",
        "\u2248 32",
        "not measured: no accelerator",
        "The reference decode varied by 14%",
        "Available CPUs: 2 of 64 online",
    ):
        assert expected in shown.text
    assert shown.tags.count("details") == 1


def test_the_next_step_is_below_the_headline_with_its_command() -> None:
    run = runs.typical()
    assert "**Next:** Apply the first fix (code below)\n" in render_markdown(build_document(run))
    untried = replace(run.recommendations[0], basis="heuristic", gain=None)
    text = render_markdown(build_document(replace(run, recommendations=(untried,))))
    assert "**Next:** Measure the first fix: `loaderbench run " in text


def test_a_profile_shows_what_it_shows_in_a_terminal() -> None:
    text = markdown(profiles.traced)

    assert "### Mean time per step" in text
    assert "| data wait |" in text
    assert "Profiling overhead: " in text
    assert "All configurations" not in text
    assert "| Baseline |" not in text


def test_failures_say_cause_count_and_hint() -> None:
    text = Rendered(markdown(runs.all_failed)).text

    assert "shared memory full (7 trials): RuntimeError: unable to allocate shared memory(shm)" in text
    assert "--shm-size=2g" in text
    assert "log: logs/r1-c06.log" in text


def test_an_interrupted_run_says_that_it_is_partial() -> None:
    assert "partial: 5 of 24 trials measured" in markdown(runs.interrupted)


def huge(run: RunRecord) -> RunRecord:
    """Very much of everything, each longer than it may be."""
    many: tuple[Trial, ...] = tuple(replace(run.trials[i % 24], id=f"t{i}") for i in range(1000))
    return replace(
        run,
        trials=many,
        configurations=tuple(replace(run.configurations[i % 8], rank=i + 1) for i in range(1000)),
        verdict=replace(run.verdict, headline="|$<" * 999, evidence=("|$<@a" * 200,) * 1000),
        recommendations=tuple(
            replace(run.recommendations[i % 3], title="$" * 999, snippet="`" * 20_000) for i in range(100)
        ),
        warnings=("$|<" * 300,) * 1000,
    )


def test_a_huge_run_is_cut_and_says_what_is_missing() -> None:
    text = render_markdown(build_document(huge(runs.typical())))

    assert len(text.encode()) <= MOST_BYTES < 900_000
    assert "*Omitted to fit a comment: " in text
    assert "- 988 more in the report" in text
    assert "Available CPUs: 2 of 64 online" in text


def test_the_table_has_twenty_rows_and_the_best_among_them() -> None:
    run = runs.typical()
    assert run.best
    others = [replace(run.configurations[0], rank=i + 1, config={"batch_size": i, "num_workers": 9}) for i in range(40)]
    best = replace(run.configurations[0], rank=41, config=run.best.config)
    plan = replace(run.plan, axes={"batch_size": list(range(40)), "num_workers": [2, 9]})
    text = render_markdown(build_document(replace(run, plan=plan, configurations=(*others, best))))
    rows = re.findall(r"^\| (?:\u2605 |= )?\d+ \|.*$", text, re.MULTILINE)

    assert len(rows) == 20
    assert sum(row.startswith("| \u2605 128 | 2 |") for row in rows) == 1
    assert "21 more in the report" in text


def test_the_same_run_is_the_same_text() -> None:
    assert markdown(runs.typical) == markdown(runs.typical)


def test_what_is_good_to_know_is_in_the_comment() -> None:
    run = replace(runs.gpu_run(), notes=("left out 2 files that cannot be decoded: a.jpg: OSError: truncated",))
    assert "### Notes\n\n- left out 2 files" in render_markdown(build_document(run)).replace("\u200b", "")
