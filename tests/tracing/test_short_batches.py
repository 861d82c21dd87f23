"""Batches too short to be divided by stage, among others: on a clock that only moves when a sample says so."""

from __future__ import annotations

import pytest
from fake_clock import fake_clock

from loaderbench.tracing.block import BLOCK_BYTES, ENABLED, Block
from loaderbench.tracing.made import Made, MadeBatches
from loaderbench.tracing.tracer import FLUSH_EACH, Tracer

SHORT_S, LONG_S = 2e-4, 3e-4


def made_of(batches_s: list[float], monkeypatch: pytest.MonkeyPatch) -> list[Made | None]:
    """Batches of one sample, of so many seconds each."""
    fake, block = fake_clock(monkeypatch), Block(bytearray(BLOCK_BYTES))
    block.header[ENABLED] = 1.0
    tracer, found = Tracer(block, max_cost_share=1e9), MadeBatches([block], in_workers=True)
    found.begin_epoch()
    for index, batch_s in enumerate(batches_s):
        tracer.sample(index, fake.pass_s, batch_s)
        tracer.collate(list, [])
    return [found.find(0, batch) for batch in range(len(batches_s))]


@pytest.mark.parametrize("turn_s", [[SHORT_S, LONG_S], [LONG_S, SHORT_S, SHORT_S, LONG_S], [SHORT_S, LONG_S, LONG_S]])
def test_the_stages_of_a_batch_never_take_longer_than_it(turn_s: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    made = made_of(20 * turn_s, monkeypatch)
    assert all(one and sum(one.stages_s.values()) <= one.ended_s - one.began_s + 1e-9 for one in made)


def test_the_second_long_batch_after_a_short_one_is_divided_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made = made_of([SHORT_S] * (FLUSH_EACH + 1) + [LONG_S] * 3, monkeypatch)
    assert [sum(one.stages_s.values()) if one else None for one in made[-3:]] == [0, *[pytest.approx(LONG_S)] * 2]
