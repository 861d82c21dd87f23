"""Times the samples and batches that one worker makes, and writes what it counted to the worker's shared block."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

from loaderbench.histogram import bin_of
from loaderbench.tracing import block as layout
from loaderbench.tracing.block import Block
from loaderbench.tracing.clock import StageClock, now_s, thread

MAX_COST_SHARE = 0.01
"""When tracing would cost more than this of a sample's time, samples are left out until it does not."""

SAMPLE_COST_S, STAGE_COST_S = 2e-6, 0.6e-6  # what tracing adds to a sample and to each stage in it, about
TINY_S = 1e-4  # samples left out are not even timed when the last one was shorter
FLUSH_S = 2e-3  # batches that come faster are written together,
FLUSH_EACH = 16  # but not the first ones


class Tracer:
    """Counts in lists of its own and adds them to the block when a batch is done. Of one thread: its maker's."""

    def __init__(self, block: Block, max_cost_share: float = MAX_COST_SHARE) -> None:
        self.block = block
        self._max_cost_share = max_cost_share
        self.clock = StageClock()
        self.path: object = None  # of the file that was opened last
        self._thread = thread()
        self._places: dict[tuple[str, str], int] = {}
        for name in block.names():
            self._know(name)
        self._idle, self._sample, self.read, self._collate = map(self.place, ("idle", "sample", "read", "collate"))
        self._random = random.Random(0)  # its own: the user's generators stay untouched
        self._skip = 0
        self._last_s = 0.0
        self._grouped = False
        self._flushed_s = 0.0
        self._slow_walls_s: list[float] = list(map(float, block.slow[:: layout.SLOW_FIELDS]))
        self._slow_floor_s = min(self._slow_walls_s)
        self._began_s = 0.0
        self._bins: dict[int, list[float]] = {}
        self._samples = self._traced = self._left_out = self._in_spans = 0

    def bind(self) -> None:
        """Belong to the thread that calls this."""
        self._thread = thread()

    def place(self, stage: str, part: str = "") -> int:
        """The number of a part of a stage."""
        known = self._places.get((stage, part))
        if known is None and len(self._places) == layout.MAX_STAGES:
            return self._sample
        if known is None:
            self.block.add_name(stage, part)
            known = self._know((stage, part))
        return known

    def _know(self, name: tuple[str, str]) -> int:
        self._places[name] = len(self._places)
        self.clock.add_stage()
        return self._places[name]

    def sample(self, call: Callable[..., Any], *args: Any, index: Any = None) -> Any:
        """Call what loads a sample, and count it unless it raises."""
        if self.clock.ident:
            return self._part_of_group(call, *args, index=index) if self._grouped else call(*args)
        if not self.block.header[layout.ENABLED] or thread() != self._thread:
            return call(*args)
        if self._skip > 0:
            return self._leave_out(call, *args, index=index)
        before_s = self.clock.wall_s[:]
        wall_s, result = self._timed(call, *args)
        self._count(wall_s, index, before_s)
        self._plan_skips(wall_s)
        self._traced += 1
        return result

    def group(self, call: Callable[[Any], Any], indices: Sequence[Any]) -> Any:
        """Call what loads many samples at once; those it loads one by one are counted one by one."""
        if self.clock.ident or not self.block.header[layout.ENABLED] or thread() != self._thread or not indices:
            return call(indices)
        counted, self._grouped = self._samples, True
        try:
            wall_s, result = self._timed(call, indices)
        finally:
            self._grouped = False
        if self._samples == counted:
            for _ in indices:
                self._count(wall_s / len(indices), None, None)
        self._traced += self._samples - counted
        return result

    def collate(self, call: Callable[[Any], Any], samples: Any) -> Any:
        """Call what makes a batch of samples; then the batch is done."""
        if not self.block.header[layout.ENABLED] or thread() != self._thread:
            return call(samples)
        collate_at_s = now_s()
        self.clock.begin(self._collate)
        try:
            return call(samples)
        finally:
            self.clock.end()
            self._end_batch(collate_at_s)

    def _timed(self, call: Callable[..., Any], *args: Any) -> tuple[float, Any]:
        """Seconds that the call took, and its result, with its stages timed."""
        clock, self.path = self.clock, None
        began_s = now_s()
        self._began_s = self._began_s or began_s
        clock.begin(self._sample)
        try:
            result = call(*args)
        finally:
            clock.end()
        return now_s() - began_s, result

    def _part_of_group(self, call: Callable[..., Any], *args: Any, index: Any) -> Any:
        before_s, began_s, self._grouped, self.path = self.clock.wall_s[:], now_s(), False, None
        try:
            result = call(*args)
        finally:
            self._grouped = True
        ended_s = now_s()
        self._count(ended_s - began_s, index, before_s)
        self.clock.leave_out(now_s() - ended_s)
        return result

    def _leave_out(self, call: Callable[..., Any], *args: Any, index: Any) -> Any:
        self._skip -= 1
        self._left_out += 1
        if self._last_s < TINY_S:
            return call(*args)
        self._began_s = self._began_s or now_s()
        began_s = now_s()
        result = call(*args)
        self._count(now_s() - began_s, index, None)
        self._left_out -= 1
        return result

    def _plan_skips(self, wall_s: float) -> None:
        """Leave out as many samples as keep the cost of tracing below its share; not in step with anything."""
        self._last_s = wall_s
        cost_s = SAMPLE_COST_S + STAGE_COST_S * self.clock.entered
        skips = math.floor(cost_s / (self._max_cost_share * max(wall_s, 1e-7)))
        self._skip = self._random.randint(skips // 2, skips + (skips + 1) // 2) if skips else 0

    def _count(self, wall_s: float, index: Any, before_s: list[float] | None) -> None:
        found = self._bins.setdefault(bin_of(wall_s), [0, 0.0])
        found[0] += 1
        found[1] += wall_s
        self._samples += 1
        if wall_s > self._slow_floor_s:
            self._keep_slow(wall_s, index, before_s)

    def _keep_slow(self, wall_s: float, index: Any, before_s: list[float] | None) -> None:
        slow, walls_s = self.block.slow, self._slow_walls_s
        place = walls_s.index(self._slow_floor_s)
        stage, path = self._sample, ""
        if before_s is not None:
            spent_s = [now - then for now, then in zip(self.clock.wall_s, before_s, strict=False)]
            stage, path = spent_s.index(max(spent_s)), self.path if isinstance(self.path, str) else ""
        at = place * layout.SLOW_FIELDS
        slow[at] = 0.0  # nobody is to read the half of two
        slow[at + 1] = float(index) if isinstance(index, int) else -1.0
        slow[at + 2], slow[at + 3] = float(stage), now_s()
        self.block.set_path(place, path)
        slow[at] = walls_s[place] = wall_s
        self._slow_floor_s = min(walls_s)

    def _end_batch(self, collate_at_s: float) -> None:
        """Write the batch's span, and add what was counted to the block unless that was done just now."""
        header, spans, ended_s = self.block.header, self.block.spans, now_s()
        at = int(header[layout.BATCHES]) % layout.SPANS * layout.SPAN_FIELDS
        spans[at], spans[at + 1] = self._began_s or collate_at_s, collate_at_s
        spans[at + 2], spans[at + 3] = ended_s, self._samples + self._left_out - self._in_spans
        self._in_spans = self._samples + self._left_out
        self._began_s = 0.0
        header[layout.BATCHES] += 1
        if ended_s - self._flushed_s > FLUSH_S or header[layout.BATCHES] <= FLUSH_EACH:
            self.flush()
            self._flushed_s = ended_s

    def flush(self) -> None:
        """Add what was counted to the block."""
        block, clock = self.block, self.clock
        for place, calls in enumerate(clock.calls):
            if calls:
                block.calls[place] += calls
                block.wall_s[place] += clock.wall_s[place]
                block.cpu_s[place] += clock.cpu_s[place]
        for place, (count, sum_s) in self._bins.items():
            block.bins[place] += count
            block.bin_sums_s[place] += sum_s
        block.header[layout.SAMPLES] += self._samples + self._left_out
        block.header[layout.TRACED] += self._traced
        self._clear()

    def _clear(self) -> None:
        self.clock.clear()
        self._bins.clear()
        self._samples = self._traced = self._left_out = self._in_spans = 0
