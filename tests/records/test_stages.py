"""One name for a stage and one order of stages, wherever they are printed."""

from __future__ import annotations

import pytest

from loaderbench.diagnosis.wording import stage_name
from loaderbench.records.words import STAGE_NAMES, stage_place
from loaderbench.report import words

IN_TABLES = ("read", "decode", "transform", "augment", "sample", "collate", "transport")


@pytest.mark.parametrize("stage", IN_TABLES)
def test_a_stage_has_the_same_name_in_the_headline_and_in_the_tables(stage: str) -> None:
    assert words.stage(stage).text == stage_name(stage)


def test_stages_are_in_the_order_in_which_a_sample_passes_them() -> None:
    assert sorted(set(IN_TABLES), key=stage_place) == list(IN_TABLES)


def test_no_two_stages_share_a_name() -> None:
    assert len(set(STAGE_NAMES.values())) == len(STAGE_NAMES)
