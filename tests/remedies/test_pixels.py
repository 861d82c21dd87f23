"""A fix that changes pixels says so in a field of the record and among its costs; one that does not says nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from planted_causes import CAUSES, FOLDER, advice
from sweeps import answers, findings

from loaderbench.conclusion import conclude
from loaderbench.records import IDENTICAL, PixelChange, Reasons, Tried
from loaderbench.remedies import REMEDIES
from loaderbench.remedies.by_cause import CauseRemedy
from loaderbench.remedies.wording import NOT_COMPARED, pixels_of
from loaderbench.store import read_run, run_json

EXAMPLE = Path(__file__).parents[2] / "reports" / "examples" / "two-cores"
CHANGING = {remedy.id for remedy in REMEDIES if isinstance(remedy, CauseRemedy) and remedy.changes_pixels}


@pytest.mark.parametrize("fix", CAUSES)
def test_an_untried_fix_says_whether_it_changes_pixels(fix: str) -> None:
    found = next(answer for answer in advice(CAUSES[fix]) if answer.id == fix)
    assert (found.pixels is not None) is (fix in CHANGING)
    assert ("Changes pixels: PSNR not measured" in found.costs) is (fix in CHANGING)
    assert found.changes_pixels == ("changes pixels, PSNR not measured" if fix in CHANGING else None)


@pytest.mark.parametrize(
    ("known", "psnr_db", "reasons", "said"),
    [
        (NOT_COMPARED, 34.04, {}, PixelChange(34.04)),
        (None, 64.5, {}, PixelChange(64.5)),
        (NOT_COMPARED, None, IDENTICAL.not_measured, None),
        (NOT_COMPARED, None, {"psnr_db": "interrupted"}, PixelChange(None, "interrupted")),
        (NOT_COMPARED, None, {}, PixelChange(None, "not compared in this run")),
        (None, None, {"psnr_db": "interrupted"}, None),
        (None, None, {}, None),
    ],
)
def test_what_was_measured_counts_before_what_is_known(
    known: PixelChange | None, psnr_db: float | None, reasons: Reasons, said: PixelChange | None
) -> None:
    tried = Tried(id="x", change={}, against={}, accepted=False, psnr_db=psnr_db, not_measured=reasons)
    assert pixels_of(known, tried) == said


@pytest.mark.parametrize(("axis", "changes"), [("presize", True), ("normalize", False)])
def test_a_sweep_over_an_option_that_changes_pixels_says_so(axis: str, changes: bool) -> None:
    values = {"presize": [None, 256], "normalize": ["worker", "device"]}[axis]
    given = findings({axis: values}, {axis: values[0]}, {(axis, values[1]): 2.0}, options=FOLDER)
    found = answers(given)["best_combination"]
    assert (found.status, found.changes_pixels is not None) == ("open", changes)
    own = answers(replace(given, options=None))["best_combination"]
    assert own.pixels is None, "what an option of the user's own dataset does is unknown"


def test_a_run_keeps_the_change_of_pixels_and_one_without_it_still_loads(tmp_path: Path) -> None:
    run = conclude(read_run(EXAMPLE))
    assert {found.id: found.changes_pixels for found in run.recommendations}["presize_offline"] == (
        "changes pixels, PSNR 34 dB"
    )
    (tmp_path / "run.json").write_text(run_json(run))
    assert read_run(tmp_path).recommendations == run.recommendations

    older = json.loads(run_json(run))
    for found in older["recommendations"]:
        del found["pixels"]
    (tmp_path / "run.json").write_text(json.dumps(older))
    assert all(found.pixels is None for found in read_run(tmp_path).recommendations)
