"""axe-core finds nothing to mend: in light, in dark, without scripts, for every state of a run."""

from typing import Any

import pytest
import run_factory as runs
import run_profiles as profiles

from loaderbench.report.document import build_document
from loaderbench.report.html import render_html

pytestmark = [pytest.mark.browser, pytest.mark.slow]
STATES = [runs.typical, runs.gpu_run, runs.all_failed, runs.partly_failed, runs.one_trial, runs.interrupted]
STATES += [profiles.traced, profiles.nothing_measured]


def findings(page: Any) -> list[str]:
    """What axe-core holds against the page, an element each."""
    from axe_playwright_python.sync_playwright import Axe

    said = Axe().run(page).response
    assert len(said["passes"]) > 10, "it looked at nothing"
    return [f"{one['id']}: {x['html'][:120]} {x['failureSummary']}" for one in said["violations"] for x in one["nodes"]]


EVERY_DAY = [(runs.typical, "light"), (runs.all_failed, "light"), (profiles.traced, "light"), (runs.one_trial, "dark")]
ALL = [*((make, "light") for make in STATES), *((make, "dark") for make in STATES[1:8:3])]
CASES = [pytest.param(*case, marks=[] if case in EVERY_DAY else pytest.mark.slow) for case in ALL]


@pytest.mark.parametrize(("make", "scheme"), CASES)
def test_a_page_has_no_barrier(shared: Any, make: Any, scheme: str) -> None:
    page = shared(make, 1200, 900, scheme)
    page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")

    assert findings(page) == []


@pytest.mark.parametrize("make", [runs.typical, profiles.traced])
def test_without_scripts_there_is_none_either(new_page: Any, tmp_path: Any, make: Any) -> None:
    """axe-core is a script itself: it looks at the page with its own scripts taken out."""
    run = make()
    text = render_html(build_document(run, runs.timeline(run)))
    head, *parts = text.split("<script")
    path = tmp_path / "still.html"
    path.write_text(head + "".join(part.partition("</script>")[2] for part in parts), encoding="utf-8")
    page = new_page()
    page.goto(path.as_uri())
    found = findings(page)
    page.close()

    assert found == []
