"""axe-core finds nothing to mend: in light, in dark, without scripts, for every state of a run."""

from typing import Any

import pytest
import run_factory as runs
import run_profiles as profiles

from loaderbench.records import RunRecord
from loaderbench.report.document import build_document
from loaderbench.report.html import render_html

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def with_gpus() -> RunRecord:
    """Two devices, and one round: axe-core takes longer than in proportion to the rows of trials."""
    return runs.typical(rounds=1, gpus=runs.gpu_run().environment.gpus, cpus=16)


STATES = [runs.typical, with_gpus, runs.all_failed, runs.partly_failed, runs.one_trial, runs.interrupted]
STATES += [profiles.traced, profiles.nothing_measured]
DARK = [with_gpus, runs.one_trial, profiles.nothing_measured]
CASES = [*((make, "light") for make in STATES), *((make, "dark") for make in DARK)]


def findings(page: Any) -> list[str]:
    """What axe-core holds against the page, an element each."""
    from axe_playwright_python.sync_playwright import Axe

    said = Axe().run(page).response
    assert len(said["passes"]) > 10, "it looked at nothing"
    return [f"{one['id']}: {x['html'][:120]} {x['failureSummary']}" for one in said["violations"] for x in one["nodes"]]


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
