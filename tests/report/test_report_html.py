import base64
import gzip
import json
import re
from html.parser import HTMLParser

import pytest
import run_factory as runs
import run_profiles as profiles
from run_hostile import hostile, surrogates

from loaderbench.report.document import build_document
from loaderbench.report.html import CONFIG, CONTENT_SECURITY_POLICY, inline_json, render_html, unbroken
from loaderbench.report.model import Chart

MAKERS = [runs.typical, runs.gpu_run, runs.all_failed, runs.partly_failed, runs.one_trial, runs.one_round]
MAKERS += [runs.interrupted, hostile, runs.without_best, surrogates]
MAKERS += [profiles.traced, profiles.generator, profiles.nothing_measured, profiles.hostile_profile]
VOID = {"meta", "link", "input", "br", "rect"}


class Page(HTMLParser):
    """Collects what a reader without scripts sees, and whether every element is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.scripts: list[dict[str, str | None]] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.ids: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag == "script":
            self.scripts.append(dict(attrs))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert tag in VOID or self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("script", "style"):
            self.text += data


def drawn(make: object) -> tuple[str, Page]:
    assert callable(make)
    run = make()
    text = render_html(build_document(run, runs.timeline(run)))
    page = Page()
    page.feed(text)
    return text, page


@pytest.mark.parametrize("make", MAKERS)
def test_a_page_is_at_most_two_and_a_half_megabytes(make: object) -> None:
    assert len(drawn(make)[0].encode()) <= 2_500_000


@pytest.mark.parametrize("make", MAKERS)
def test_every_element_is_closed_every_id_is_unique_and_every_link_leads_somewhere(make: object) -> None:
    _, page = drawn(make)

    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    targets = {value[1:] for tag, name, value in page.attributes if tag == "a" and name == "href" and value}
    assert targets <= set(page.ids)


@pytest.mark.parametrize("make", MAKERS)
def test_nothing_on_the_page_asks_for_an_address(make: object) -> None:
    _, page = drawn(make)
    addresses = [value for _, name, value in page.attributes if name in ("src", "href", "action", "srcset", "data")]

    assert all(value == "data:," or (value or "").startswith("#") for value in addresses)


def test_the_policy_forbids_all_but_inline_script_and_style() -> None:
    text, _ = drawn(runs.typical)

    assert CONTENT_SECURITY_POLICY.startswith(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
    )
    assert "unsafe-eval" not in CONTENT_SECURITY_POLICY
    assert 'http-equiv="Content-Security-Policy"' in text


@pytest.mark.parametrize(("evil", "harmless"), [(hostile, runs.typical), (profiles.hostile_profile, profiles.traced)])
def test_strings_from_outside_are_text_and_nothing_else(evil: object, harmless: object) -> None:
    text, page = drawn(evil)

    assert "<script>alert" not in text
    assert "<img" not in text
    assert len(page.scripts) == len(drawn(harmless)[1].scripts)
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    assert "\u202e" not in text


def test_charts_do_not_read_strings_from_outside_as_markup() -> None:
    run = hostile()
    figures = repr([chart.figures for chart in build_document(run, runs.timeline(run)).all(Chart)])

    assert "<script" not in figures
    assert "<img" not in figures


def test_embedded_json_can_end_neither_its_element_nor_a_line() -> None:
    written = inline_json({"x": "</script><!--\u2028\u2029&"})

    assert not re.search("[<>&\u2028\u2029]", written)


def test_the_page_can_be_read_without_scripts() -> None:
    _, page = drawn(runs.typical)

    for expected in (
        "The consumer waits for data 79%",
        "844",
        "3.9\u00d7",
        "Use two workers and a batch size of 128",
        "212 samples/s unchanged",
        "no GPU",
        "The reference decode varied by 14%",
        "r3-c07",
    ):
        assert expected in page.text


def test_parts_without_data_leave_no_empty_frame() -> None:
    text, page = drawn(runs.all_failed)

    assert not {"sweep", "scaling", "timeline", "plotly", "figures"} & set(page.ids)
    assert 'class="chart"' not in text


def test_the_same_run_draws_the_same_page() -> None:
    assert drawn(runs.typical)[0] == drawn(runs.typical)[0]


def test_a_thousand_trials_do_not_swell_the_page() -> None:
    from dataclasses import replace

    run = runs.typical()
    many = tuple(replace(run.trials[i % 24], id=f"t{i}") for i in range(1000))
    text = render_html(build_document(replace(run, trials=many), runs.timeline(run, seconds=60)))

    assert len(text.encode()) <= 2_500_000
    assert "600 more trials in the downloads below." in text


def test_no_button_of_plotly_uploads_anything() -> None:
    assert CONFIG["showSendToCloud"] is False
    assert CONFIG["displaylogo"] is False
    assert CONFIG["displayModeBar"] is False


@pytest.mark.parametrize(
    ("plain", "held"),
    [
        ("41% (38\u201344%)", "41% (38\u2060\u2013\u206044%)"),
        ("14:03 UTC, 6 min 4 s", "14:03 UTC, 6\u00a0min\u00a04\u00a0s"),
        ("Bound \u2013 input, 100 samples", "Bound \u2013 input, 100 samples"),
        ("from % to r1-c02", "from % to r1-c02"),
    ],
)
def test_numbers_are_held_together(plain: str, held: str) -> None:
    assert unbroken(plain) == held


def test_intervals_do_not_break_wherever_they_stand_on_the_page() -> None:
    _, page = drawn(runs.typical)

    assert not re.findall(r"\d %|\d\u2013\d", page.text)


def test_what_is_copied_has_no_invisible_signs() -> None:
    text, _ = drawn(runs.typical)

    assert not [code for code in re.findall("<code>(.*?)</code>", text, re.DOTALL) if set(code) & set("\u00a0\u2060")]


def test_a_failure_says_why_before_anything_is_unfolded() -> None:
    text, _ = drawn(runs.all_failed)
    first, second = text.split('<article class="card failure"')[1:3]
    parts = ("RuntimeError: unable to allocate", "Run the container", "logs/r1-c00.log", "<details")

    assert sorted(map(first.index, parts)) == [first.index(part) for part in parts]
    assert "Killed." in second
    assert "<details" not in second.split("</article>")[0]


def test_names_that_are_no_unicode_can_be_written_in_every_part() -> None:
    text, page = drawn(surrogates)
    text.encode("utf-8")
    packed = re.search('id="contents">([^<]+)<', text)

    assert "caf?.jpg" in page.text
    assert packed
    as_json, as_csv = json.loads(gzip.decompress(base64.b64decode(packed[1])))
    as_csv.encode("utf-8")
    as_json.encode("utf-8")
    assert json.loads(as_json)["name"] == "images caf\udce9.jpg"


def test_embedded_json_can_hold_a_name_that_is_no_unicode() -> None:
    written = inline_json({"x": "caf\udce9"})

    assert written.encode("utf-8")
    assert json.loads(written) == {"x": "caf\udce9"}
