"""One configuration is chosen at a time: by mouse, by keyboard, by the table, at the timeline, by the address."""

from dataclasses import replace
from typing import Any

import pytest
import run_factory as runs
from run_hostile import hostile

from loaderbench.records import RunRecord, TimelinePoint

pytestmark = pytest.mark.browser


def chosen(page: Any) -> tuple[str, str, str, str]:
    """What the page says is chosen: its panel, its step, its timeline and the address."""
    return (
        page.locator("#chosen code").inner_text(),
        page.locator("#chosen-inside .small").first.inner_text(),
        page.evaluate("document.querySelector('#timeline-trial').selectedOptions[0].textContent"),
        page.evaluate("location.hash"),
    )


def shows(page: Any, name: str) -> bool:
    """Whether every part of the page tells of the configuration."""
    page.locator("#chosen code", has_text=f"{name} ").wait_for()
    panel, step, timeline, _ = chosen(page)
    return name in panel and name in step and name in timeline


def cell(page: Any, row: int, column: int) -> Any:
    return page.locator("table.heat tbody tr").nth(row).locator("td.cell a").nth(column)


def test_the_page_begins_with_the_best_configuration(shared: Any) -> None:
    page = shared(runs.typical)

    assert shows(page, "batch_size=128 num_workers=2")
    assert page.locator("td.is-chosen").count() == 1
    assert page.locator("td.is-chosen.is-best").count() == 1
    assert chosen(page)[3] == ""


def test_a_click_on_a_cell_changes_step_timeline_and_address(first_visit: Any, shared: Any) -> None:
    seen, page = first_visit(runs.typical), shared(runs.typical)
    before = page.locator("[data-figure=timeline] path.js-line").first.get_attribute("d")
    cell(page, 0, 3).click()

    assert shows(page, "batch_size=32 num_workers=3")
    assert chosen(page)[3] == "#configuration=3"
    assert page.locator("td.is-chosen").get_attribute("data-choice") == "3"
    assert page.locator("[data-figure=timeline] path.js-line").first.get_attribute("d") != before
    assert seen.complaints == []


def test_the_arrow_keys_go_from_cell_to_cell_and_enter_chooses(shared: Any) -> None:
    page = shared(runs.typical)
    cell(page, 0, 0).focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowLeft", "ArrowRight", "Enter"):
        page.keyboard.press(key)

    assert shows(page, "batch_size=128 num_workers=1")


def test_the_radio_buttons_of_the_table_choose(shared: Any) -> None:
    page = shared(runs.typical)
    page.locator("#sweep summary").click()
    page.locator("input[name=configuration][value='0']").focus()
    page.keyboard.press("Space")

    assert shows(page, "batch_size=32 num_workers=0")
    assert "baseline" in page.locator("#chosen").inner_text()


def test_the_timeline_chooses_for_the_whole_page(shared: Any) -> None:
    page = shared(runs.typical)
    page.select_option("#timeline-trial", index=3)

    page.wait_for_url("**#configuration=*")
    panel, step, timeline, _ = chosen(page)
    name = timeline.split(", round")[0]
    assert name in panel
    assert name in step


def opened_at(visit: Any, address: str) -> Any:
    """A page that was opened at an address, as by a link."""
    seen = visit(runs.typical(), address=address)
    seen.drawn()
    return seen


@pytest.mark.slow
def test_an_address_opens_the_page_with_its_configuration(visit: Any) -> None:
    assert shows(opened_at(visit, "#configuration=1").page, "batch_size=32 num_workers=1")


@pytest.mark.slow
def test_an_address_that_names_nothing_opens_the_page_with_the_best(visit: Any) -> None:
    seen = opened_at(visit, "#configuration=__proto__")

    assert shows(seen.page, "batch_size=128 num_workers=2")
    assert seen.complaints == []


@pytest.mark.parametrize(
    "address", ["#configuration=99", "#configuration=x", "#constructor", "#configuration=__proto__"]
)
def test_an_address_that_names_nothing_changes_nothing(first_visit: Any, shared: Any, address: str) -> None:
    seen, page = first_visit(runs.typical), shared(runs.typical)
    cell(page, 0, 3).click()
    page.wait_for_url("**#configuration=3")
    page.evaluate("(address) => { location.hash = address; }", address)
    page.wait_for_timeout(200)

    assert shows(page, "batch_size=32 num_workers=3")
    assert seen.complaints == []


def test_a_configuration_that_failed_says_why_nothing_is_known_of_it(shared: Any) -> None:
    page = shared(runs.partly_failed)
    cell(page, 1, 3).click()
    page.locator("#chosen .missing").wait_for()

    assert "worker killed in 3 of 3 trials" in page.locator("#chosen").inner_text()
    assert page.locator("#chosen-inside").inner_text().strip() == ""
    assert page.locator("[data-figure=timeline]").is_visible() is False
    assert "no monitor readings" in page.locator("#timeline-note").inner_text()


def test_one_part_of_the_map_can_be_shown_alone(shared: Any) -> None:
    page = shared(runs.gpu_run)
    assert page.locator(".facet:visible").count() == 2
    page.check("input[name=facet][value='1']")
    assert page.locator(".facet:visible").count() == 1
    page.check("input[name=facet][value='']")
    assert page.locator(".facet:visible").count() == 2


def test_names_from_outside_stay_text_when_they_are_chosen(first_visit: Any, shared: Any) -> None:
    seen, page = first_visit(hostile), shared(hostile)
    for column in range(4):
        cell(page, 0, column).click()

    page.wait_for_url("**#configuration=*")
    assert seen.complaints == []
    assert page.locator("img").count() == 0


def test_without_scripts_a_cell_leads_to_its_trial(visit: Any) -> None:
    page = visit(runs.typical(), java_script_enabled=False).page

    assert cell(page, 0, 3).get_attribute("href") == "#trial-4"
    assert page.locator("#chosen").is_visible() is False
    assert page.locator(".choose:visible").count() == 0


@pytest.mark.slow
def test_without_a_named_best_panel_step_and_timeline_agree_from_the_start(visit: Any) -> None:
    page = visit(runs.without_best()).drawn()

    assert shows(page, "batch_size=128 num_workers=2")


def only_best(run: RunRecord) -> list[TimelinePoint]:
    assert run.best
    own = next(t.id for t in run.trials if t.config == run.best.config)
    return [point for point in runs.timeline(run) if point.trial == own]


@pytest.mark.slow
def test_the_only_timeline_there_is_comes_back_with_its_configuration(visit: Any) -> None:
    page = visit(runs.typical(), only_best).drawn()
    cell(page, 0, 0).click()
    page.locator("#chosen code", has_text="num_workers=0").wait_for()
    assert page.locator("[data-figure=timeline]").is_visible() is False
    assert page.evaluate("document.querySelector('#timeline-trial').selectedIndex") == -1
    cell(page, 1, 2).click()
    page.locator("#chosen code", has_text="batch_size=128 num_workers=2").wait_for()

    assert page.locator("[data-figure=timeline]").is_visible()
    assert shows(page, "batch_size=128 num_workers=2")


def test_a_hidden_part_of_the_map_shows_itself_when_its_configuration_is_chosen(shared: Any) -> None:
    page = shared(runs.gpu_run)
    page.check("input[name=facet][value='0']")
    page.evaluate("location.hash = '#configuration=1'")
    page.locator("#chosen code", has_text="pin_memory=true").wait_for()

    assert page.locator("td.is-chosen:visible").count() == 1
    assert page.locator("input[name=facet]:checked").get_attribute("value") == ""


def test_going_back_to_the_plain_address_shows_the_first_again(shared: Any) -> None:
    page = shared(runs.typical)
    page.evaluate("location.hash = '#configuration=0'")
    page.locator("#chosen code", has_text="num_workers=0").wait_for()
    page.go_back()
    page.locator("#chosen code", has_text="batch_size=128 num_workers=2").wait_for()

    assert shows(page, "batch_size=128 num_workers=2")


def test_of_two_fast_choices_the_second_counts(shared: Any) -> None:
    page = shared(runs.typical)
    page.evaluate("document.querySelectorAll('td[data-choice] a').forEach((a, i) => { if (i < 2) a.click(); })")
    page.wait_for_url("**#configuration=1")

    assert shows(page, "batch_size=32 num_workers=1")


def test_a_browser_that_cannot_unpack_leads_to_the_trial_instead(visit: Any) -> None:
    seen = visit(runs.typical(), before="delete window.DecompressionStream")
    cell(seen.page, 0, 3).click()

    assert seen.page.url.endswith("#trial-4")
    assert seen.page.locator(".choose:visible, .downloads:visible").count() == 0


@pytest.mark.slow
def test_the_arrow_keys_pass_over_what_was_not_run(visit: Any) -> None:
    run = runs.typical()
    some = tuple(c for i, c in enumerate(run.configurations) if i != 1)
    page = visit(replace(run, configurations=some, complete=False)).drawn()
    cell(page, 0, 0).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")

    assert shows(page, "batch_size=32 num_workers=2")


def test_the_map_is_one_stop_of_the_tab_key(shared: Any) -> None:
    page = shared(runs.gpu_run)

    assert page.locator("table.heat a[tabindex='0']").count() == 1


def test_what_was_chosen_is_told_once_and_shortly(shared: Any) -> None:
    page = shared(runs.typical)
    assert page.locator("[aria-live]").count() == 0
    cell(page, 0, 3).click()
    page.wait_for_url("**#configuration=3")

    said = page.locator("#chosen-status").inner_text()
    assert said == "Selected: batch_size=32 num_workers=3 pin_memory=false"
