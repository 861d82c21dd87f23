"""Times the samples and batches that one worker makes, and adds the counts to the worker's shared block."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from loaderbench.histogram import bin_of
from loaderbench.tracing import block as layout
from loaderbench.tracing.block import Block, add_read
from loaderbench.tracing.clock import IDLE, StageClock, cpu_now_s, now_s, thread, timed
from loaderbench.tracing.sample_choice import MAX_COST_SHARE, SampleChoice
from loaderbench.tracing.slowest import SlowestSamples

SHORT_S = 5e-3  # longer samples are always traced
TINY_S = 1e-4  # shorter samples that are skipped are only counted
FLUSH_S = 2e-3  # batches that come faster are flushed together,
FLUSH_EACH = 16  # except the first ones
SLOW_BATCHES = 4.0  # times the usual duration: a slower batch has a slow sample
STAGED_S = 2.5e-4  # shorter batches are not split by stage, which would cost over 1% of their time
Count = Callable[[Any], int]
_UNDIVIDED = array("d", [0.0] * layout.SPAN_STAGES)


class Tracer:
    """Counts in private lists, and adds them to the block when a batch is done. Belongs to the thread that created it.

    `count` returns the number of samples in an item, for a dataset whose items can be batches; by default, 1.
    """

    def __init__(self, block: Block, max_cost_share: float = MAX_COST_SHARE, *, count: Count | None = None) -> None:
        self.block, self._header = block, block.header
        self._samples_in, self.clock = count, StageClock()
        self._choice = SampleChoice(self.clock, max_cost_share)
        self.path: object = None  # of the last file opened
        self.decoding: set[int] = set()  # stages that already count as decoding
        self._thread = thread()
        self._places: dict[tuple[str, str], int] = {}
        self._slots: list[int] = []  # for every place, the column of its stage in a batch's span
        self._slot_of: dict[str, int] = {}
        for name in block.names():
            self._register(name)
        self.place("idle")  # must come first: its number is `IDLE`
        self._sample, self._collate = self.place("sample"), self.place("collate")
        self.read, self.decode = self.place("read"), self.place("decode")
        self.clock.read_stage = self.read
        self._skip = 0
        self._last_s = 0.0
        self._indices: Sequence[Any] | None = None  # of the samples that one call is loading
        self._group_at = 0
        self._leaving_out = False
        # Start, end and known CPU time of skipped batches not counted yet
        self._left_out_spans_s: deque[tuple[float, float, float | None]] = deque()
        self._flushed_s = 0.0
        self._slowest = SlowestSamples(block)
        self._began_s, self._walls_s = 0.0, list[float]()
        self._traced = self._left_out = self._tiny = self._in_spans = 0
        self._spans_s = [0.0] * layout.SPAN_STAGES  # seconds by stage of the batches since the last flush
        self._after_short = False  # the previous batch was not split by stage, and nothing was flushed since
        self._batch_samples, self._batch_s = 0, 0.0  # of the last traced batch; an outlier's duration is capped
        self.batch_cost_s = 0.0  # time taken to record the last traced batch
        self.read_bytes = 0  # of the current sample
        self._reads = [0.0] * layout.READS

    def bind(self) -> None:
        """Bind the tracer to the calling thread."""
        self._thread, self.clock.cpu_at_s = thread(), cpu_now_s()

    def place(self, stage: str, part: str = "") -> int:
        """The number assigned to a part of a stage."""
        known = self._places.get((stage, part))
        if known is None:
            for other in self.block.names()[len(self._places) :]:  # registered by another loader's workers
                self._register(other)
            known = self._places.get((stage, part))
        if known is None and len(self._places) == layout.MAX_STAGES:
            return self._sample
        if known is None:
            self.block.add_name(stage, part)
            known = self._register((stage, part))
        return known

    def timed(self, call: Callable[..., Any], place: int) -> Callable[..., Any]:
        """Wrap `call` to charge its time to a stage."""
        return timed(call, self.clock, place)

    def stage_of(self, place: int) -> str:
        """The stage that a place belongs to."""
        return next((stage for (stage, _), known in self._places.items() if known == place), "")

    def _register(self, name: tuple[str, str]) -> int:
        self._places[name] = len(self._places)
        self.clock.add_stage()
        if name[0] not in self._slot_of:
            known = len(self._slot_of)
            self._slot_of[name[0]] = known if known < layout.SPAN_STAGES else self._slot_of["sample"]
        self._slots.append(self._slot_of[name[0]])
        return self._places[name]

    def sample(self, index: Any, call: Callable[..., Any], *args: Any) -> Any:  # noqa: C901 - flat for speed
        """Call a function that loads a sample, and count the sample under its index unless the call raises.

        This runs for every sample, with the CPU caches full of pixels. The code is flat and touches little memory for
        speed.
        """
        clock = self.clock
        if thread() != self._thread:
            return call(*args)
        if clock.ident:
            return call(*args) if self._indices is None else self._sample_in_group(call, *args)
        if self._leaving_out or not self._header[layout.ENABLED]:
            return call(*args)
        if self._skip > 0:
            return self._skip_timing(index, call, *args)
        before_s, cpu_before_s, traced = clock.wall_s.copy(), clock.cpu_s.copy(), self._traced
        self.path, clock.read_s, self.read_bytes = None, 0.0, 0
        clock.begin(self._sample)
        began_s, cpu_began_s = clock.at_s, clock.cpu_at_s
        try:
            result = call(*args)
        except BaseException:
            clock.end()
            raise
        clock.turn(IDLE)
        clock.ident = 0
        if self.read_bytes:
            add_read(self._reads, self.read_bytes, clock.at_s - began_s - (clock.cpu_at_s - cpu_began_s))
        self._began_s = self._began_s or began_s
        wall_s = clock.at_s - began_s
        self._traced += 1
        self._walls_s.append(wall_s)
        if type(index) is list:  # one call loaded a list of samples
            self._spread_last(wall_s, len(index))
        elif self._samples_in is not None and (samples := self._samples_in(result)) != 1:
            self._spread_last(wall_s, samples)
        elif wall_s > self._slowest.floor_s:
            self._keep_slow(wall_s, index, before_s)
        if wall_s > self._choice.long_s or wall_s >= SHORT_S:
            self._choice.add_traced(self._traced - traced, wall_s, wall_s, before_s, cpu_before_s)
        else:
            self._plan_skips(wall_s)
        return result

    def forget_unfinished_batch(self) -> None:
        """Assign the samples made since the last batch to no batch, as at the end of an epoch with `drop_last`."""
        if not self.clock.ident:
            self._began_s, self._in_spans = 0.0, self._made()

    def group(self, call: Callable[[Any], Any], indices: Sequence[Any]) -> Any:
        """Call a function that loads several samples at once. Those that it loads one by one are counted one by one.

        A custom batch sampler can yield tensors or arrays, which have no truth value, or iterators.
        """
        count = len(indices) if hasattr(indices, "__len__") and hasattr(indices, "__getitem__") else 0
        ignored = self._leaving_out or thread() != self._thread or not count
        if ignored or self.clock.ident or not self._header[layout.ENABLED]:
            return call(indices)
        if self._skip >= count:
            return self._skip_group(call, indices, count)
        counted, self._indices = len(self._walls_s), indices
        self._group_at, self.read_bytes, cpu_began_s = counted, 0, cpu_now_s()
        before_s, cpu_before_s = self.clock.wall_s.copy(), self.clock.cpu_s.copy()
        try:
            wall_s, result = self._timed(call, indices)
        finally:
            self._indices = None
        if len(self._walls_s) - counted != count:  # not loaded one by one, or not in this thread
            del self._walls_s[counted:]
            self._walls_s += [wall_s / count] * count
            if self.read_bytes:
                add_read(self._reads, self.read_bytes / count, (wall_s - (cpu_now_s() - cpu_began_s)) / count)
        self._traced += count
        if wall_s / count > self._choice.long_s or wall_s / count >= SHORT_S:
            self._choice.add_traced(count, wall_s, wall_s / count, before_s, cpu_before_s)
        else:
            self._plan_skips(wall_s / count)
            self._skip *= count
        return result

    def _skip_group(self, call: Callable[[Any], Any], indices: Sequence[Any], count: int) -> Any:
        """Load several samples at once without timing each; they are counted as equally long."""
        self._skip -= count
        began_s, self._leaving_out = now_s(), True
        try:
            result = call(indices)
        finally:
            self._leaving_out = False
        self._began_s = self._began_s or began_s
        took_s = now_s() - began_s
        self._count_alike(count, took_s)
        if took_s / count > self._choice.long_s:
            self._skip = 0
            self._choice.add_skipped(count, took_s)
        return result

    def collate(self, call: Callable[[Any], Any], samples: Any) -> Any:
        """Call a function that collates samples, and complete the batch."""
        if not self.block.header[layout.ENABLED] or thread() != self._thread:
            return call(samples)
        collate_at_s = now_s()
        self.clock.begin(self._collate)
        try:
            return call(samples)
        finally:
            self.clock.end()
            self._end_batch(collate_at_s)

    def batch(self, call: Callable[[], Any], count: Callable[[Any], int]) -> Any:
        """Call a function that makes an entire batch in one piece. `count` returns the number of its samples."""
        if self.clock.ident or not self.block.header[layout.ENABLED] or thread() != self._thread:
            return call()
        _, result = self._timed(call)
        self._traced += (samples := count(result))
        self._left_out += samples  # the time of each sample is unknown
        self._end_batch(now_s())
        return result

    def left_out(self, batches: Iterator[Any]) -> Any:
        """Load a batch without timing its samples. It is counted with the next traced batch.

        A loop gets here with its CPU caches full of other data, so this code touches little memory.
        """
        cpu_began_s = cpu_now_s() if self._choice.has_long_batches else None
        self._leaving_out, began_s = True, now_s()
        try:
            result = next(batches)
        finally:
            self._leaving_out = False
        self._left_out_spans_s.append((began_s, now_s(), None if cpu_began_s is None else cpu_now_s() - cpu_began_s))
        return result

    def count_left_out(self) -> None:
        """Count the skipped batches, assuming that each has as many samples as the last traced batch."""
        spans_s = self._left_out_spans_s
        while spans_s:
            self._count_span(*spans_s.popleft())

    def _count_span(self, began_s: float, ended_s: float, cpu_s: float | None) -> None:
        took_s, samples = ended_s - began_s, self._batch_samples
        if samples and took_s > SLOW_BATCHES * self._batch_s + TINY_S:  # caused by one slow sample, of unknown index
            self._count(took_s - self._batch_s, None, None)
            self._choice.add_batch(took_s - self._batch_s, cpu_s)
            took_s, samples = self._batch_s, samples - 1
        self._count_alike(samples, took_s)
        self._keep_span(began_s, ended_s, ended_s, _UNDIVIDED)

    def _count_alike(self, samples: int, took_s: float) -> None:
        """Count samples that took `took_s` seconds in total, as if all took equally long."""
        self._left_out += samples
        if samples:
            self.block.add_times(samples, took_s)

    def _timed(self, call: Callable[..., Any], *args: Any) -> tuple[float, Any]:
        """Time a call and its stages. Returns the seconds that the call took, and its result."""
        clock = self.clock
        began_s = now_s()
        self._began_s = self._began_s or began_s
        clock.read_s = 0.0
        clock.begin(self._sample)
        try:
            result = call(*args)
        finally:
            clock.end()
        return now_s() - began_s, result

    def _sample_in_group(self, call: Callable[..., Any], *args: Any) -> Any:
        indices, self._indices, self.path = self._indices, None, None
        read_before = self.read_bytes
        cpu_began_s = cpu_now_s() if read_before else 0.0  # the first sample shows whether samples read files
        before_s, began_s = self.clock.wall_s.copy(), now_s()
        try:
            result = call(*args)
        finally:
            self._indices = indices
        ended_s, place = now_s(), len(self._walls_s) - self._group_at
        if 0 < read_before < self.read_bytes:
            add_read(self._reads, self.read_bytes - read_before, ended_s - began_s - (cpu_now_s() - cpu_began_s))
        index = indices[place] if indices is not None and place < len(indices) else None
        self._count(ended_s - began_s, index, before_s)
        self.clock.leave_out(now_s() - ended_s)
        return result

    def _skip_timing(self, index: Any, call: Callable[..., Any], *args: Any) -> Any:
        self._skip -= 1
        began_s, self._leaving_out = now_s(), True
        try:
            result = call(*args)
        finally:
            self._leaving_out = False
        took_s, samples, self._began_s = now_s() - began_s, 1, self._began_s or began_s
        if type(index) is list:
            self._left_out += (samples := len(index))
        elif self._samples_in is not None and (samples := self._samples_in(result)) != 1:
            self._left_out += samples
        elif took_s < TINY_S and self._last_s < TINY_S:
            self._left_out, self._tiny = self._left_out + 1, self._tiny + 1
            return result
        else:
            self._count(took_s, index, None)
        if took_s > self._choice.long_s:
            self._skip = 0  # a long sample is often followed by others
            self._choice.add_skipped(samples, took_s)
        return result

    def _spread_last(self, wall_s: float, samples: int) -> None:
        """Count the last call as `samples` samples of equal duration."""
        self._walls_s[-1:] = [wall_s / max(1, samples)] * samples
        self._traced += samples - 1

    def _plan_skips(self, wall_s: float) -> None:
        """Skip a random number of samples that keeps the cost of tracing below its limit."""
        self._last_s = wall_s
        self._skip = self._choice.skips_after(wall_s, sum(self.clock.calls) / max(1, self._traced))

    def _count(self, wall_s: float, index: Any, before_s: list[float] | None) -> None:
        self._walls_s.append(wall_s)
        if wall_s > self._slowest.floor_s:
            self._keep_slow(wall_s, index, before_s)

    def _keep_slow(self, wall_s: float, index: Any, before_s: list[float] | None) -> None:
        stage, path = self._sample, ""
        if before_s is not None:
            spent_s = [now - then for now, then in zip(self.clock.wall_s, before_s, strict=False)]
            stage, path = spent_s.index(max(spent_s)), self.path if isinstance(self.path, str) else ""
        self._slowest.keep(wall_s, index, stage, path)

    def _end_batch(self, collate_at_s: float) -> None:
        """Write the batch's span, and flush the counts to the block unless that happened very recently."""
        began_s, ended_s = self._began_s or collate_at_s, now_s()
        batch_s = ended_s - began_s
        short = batch_s <= STAGED_S
        stages_s = _UNDIVIDED if short else self._stages_of_batch()
        self._after_short = short
        self._began_s = 0.0
        self._batch_samples = self._made() - self._in_spans
        self._batch_s = min(batch_s, 2 * self._batch_s or batch_s)
        self._keep_span(began_s, collate_at_s, ended_s, stages_s)
        self.batch_cost_s = now_s() - ended_s

    def _keep_span(self, began_s: float, collate_at_s: float, ended_s: float, stages_s: array[float]) -> None:
        header, spans = self._header, self.block.spans
        at = int(header[layout.BATCHES]) % layout.SPANS * layout.SPAN_FIELDS
        spans[at], spans[at + 1] = began_s, collate_at_s
        spans[at + 2], spans[at + 3] = ended_s, self._made() - self._in_spans
        spans[at + 4 : at + layout.SPAN_FIELDS] = stages_s
        self._in_spans = self._made()
        header[layout.BATCHES] += 1
        self._slowest.forget_before(header[layout.SINCE_S])
        if ended_s - self._flushed_s > FLUSH_S or header[layout.BATCHES] <= FLUSH_EACH:
            self._write()
            self._flushed_s = ended_s

    def _stages_of_batch(self) -> array[float]:
        """Wall seconds by stage since the previous batch; zeros after a short one, whose time would be included."""
        before_s, total_s = self._spans_s, [0.0] * layout.SPAN_STAGES
        for slot, wall_s in zip(self._slots, self.clock.wall_s, strict=True):
            total_s[slot] += wall_s
        self._spans_s = total_s
        if self._after_short:
            return _UNDIVIDED
        return array("d", [now - then for now, then in zip(total_s, before_s, strict=True)])

    def flush(self) -> None:
        """Add all counts, including skipped batches, to the block. Does nothing in other threads."""
        if thread() == self._thread:
            self.count_left_out()
            self._write()

    def _write(self) -> None:
        """Add the counts to the block."""
        block, clock = self.block, self.clock
        for place, calls in enumerate(clock.calls):
            if calls:
                block.calls[place] += calls
                block.wall_s[place] += clock.wall_s[place]
                block.cpu_s[place] += clock.cpu_s[place]
        for wall_s in self._walls_s:
            place = bin_of(wall_s)
            block.bins[place] += 1
            block.bin_sums_s[place] += wall_s
        if self._tiny:  # assumed to take as long as the last timed sample
            block.add_times(self._tiny, self._tiny * self._last_s)
        for place, value in enumerate(self._reads, layout.READS_AT):
            block.header[place] += value
        self._choice.write(block)
        block.header[layout.SAMPLES] += self._made()
        block.header[layout.TRACED] += self._traced
        self._clear()

    def _made(self) -> int:
        return len(self._walls_s) + self._left_out

    def _clear(self) -> None:
        self.clock.clear()
        self._walls_s.clear()
        self._traced = self._left_out = self._tiny = self._in_spans = 0
        self._spans_s, self._after_short, self._reads = [0.0] * layout.SPAN_STAGES, False, [0.0] * layout.READS
