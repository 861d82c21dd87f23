"""What happens inside a loader is told truly, however it makes its batches, and nothing of the user's is changed."""

from __future__ import annotations

import builtins
import gc
import io
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import PIL.Image
import PIL.ImageFile
import pytest
import torch
from followed_batches import Followed
from planted import (
    Batched,
    Files,
    FolderStyle,
    OwnIterator,
    Raises,
    Slotted,
    Step,
    Stream,
    means,
    remember,
    slow_collate,
)
from torch.utils.data import ConcatDataset, DataLoader, Dataset, IterableDataset, Subset
from torchvision.transforms import v2

from loaderbench.tracing import active
from loaderbench.tracing.loader import LoaderTrace
from loaderbench.tracing.reading import Traced

WITHIN, WITHIN_S = 0.02, 50e-6
ATTEMPTS, PAUSE_S = 12, 0.3


def state_of(loader: DataLoader[Any]) -> dict[str, Any]:
    """Everything that a hook could be left on."""
    return {
        "loader": dict(vars(loader)),
        "dataset": dict(vars(loader.dataset)) if hasattr(loader.dataset, "__dict__") else None,
        "kind": type(loader.dataset),
        "class": {
            name: value for name, value in vars(type(loader.dataset)).items() if name != "__slotnames__"
        },  # pickle's
        "torch": {name: value for kind in (DataLoader, Dataset) for name, value in vars(kind).items()},
        "functions": [builtins.open, io.open, PIL.Image.open, vars(PIL.ImageFile.ImageFile)["load"]],
        "operators": torch.ops.image.decode_jpeg,
        "tracer": active.tracer(),
    }


@pytest.fixture(autouse=True)
def no_hook_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every loader that a test makes through `traced` is as it was, and so is the rest of the process."""
    MADE.clear()
    yield
    for loader, before in MADE:
        loader._iterator = None  # workers that persist are the loader's own, as without us
        after = state_of(loader)
        if before["dataset"] is not None:
            before["dataset"].pop("made", None)
            after["dataset"].pop("made", None)
        assert after == before


MADE: list[tuple[DataLoader[Any], dict[str, Any]]] = []


def traced(dataset: Any, epochs: int = 1, **arguments: Any) -> tuple[list[Any], Traced]:
    """The batches of a loader, and what was traced of them."""
    loader = DataLoader(dataset, **{"batch_size": 4, **arguments})
    MADE.append((loader, state_of(loader)))
    trace = LoaderTrace(loader)
    try:
        batches = [batch for _ in range(epochs) for batch in trace.batches()]
        return batches, trace.read()
    finally:
        trace.stop()


def per_sample(found: Traced, stage: str, part: str | None = None) -> float:
    """Seconds per sample of a stage, or of one part of it."""
    totals = [total for (name, own), total in found.parts.items() if name == stage and part in (None, own)]
    return sum(total.wall_s for total in totals) / found.samples


STAGES = {"decode": "decode", "First": "transform", "Second": "transform", "sample": "sample", "collate": "collate"}


def told_truly(measure: Callable[[], tuple[list[Any], Traced]]) -> Traced:
    """Measure until each stage was reported once within 2% or 50 microseconds of its own clock.

    The rest of a sample's time, besides its planted stages, is the dataset's own and is measured without a tracer. A
    neighbor can take the CPU between the planted clock and ours, but not each time and not in each stage.
    """
    off: dict[str, tuple[float, float]] = {}
    agreed: set[str] = set()
    for _ in range(ATTEMPTS):
        batches, found = measure()
        planted = {name: time_s for name, time_s in means(batches).items() if name in STAGES}
        if "sample" in planted:
            planted["sample"] += between_stages_s(MADE[-1][0].dataset)
        told = {name: per_sample(found, STAGES[name], name if name[0].isupper() else None) for name in planted}
        agreed |= {name for name in planted if agrees(told[name], planted[name])}
        off = {name: (told[name], planted[name]) for name in planted.keys() - agreed}
        if not off:
            return found
        time.sleep(PAUSE_S)  # what takes the CPU may do so for seconds
    raise AssertionError(f"told, planted: {off}")


def between_stages_s(dataset: Any) -> float:
    """Seconds per sample, without a tracer, that no planted stage clocked: calls, and a dictionary put together."""
    gaps_s = []
    for index in range(0 if isinstance(dataset, IterableDataset) else len(dataset)):
        began_s = time.perf_counter()
        clocked_s = sum(dataset[index].values())
        gaps_s.append(time.perf_counter() - began_s - clocked_s)
    return fmean(gaps_s) if gaps_s else 0.0


def agrees(told: float, planted: float) -> bool:
    return abs(told - planted) <= max(WITHIN * planted, WITHIN_S)


WAYS = [{"num_workers": 0}, {"num_workers": 1}, {"num_workers": 2}, {"num_workers": 2, "persistent_workers": True}]


@pytest.mark.sleeping
@pytest.mark.parametrize("arguments", WAYS, ids=lambda way: "-".join(map(str, way.values())))
def test_every_stage_is_told_as_its_own_code_clocked_it(arguments: dict[str, Any]) -> None:
    epochs = 2 if "persistent_workers" in arguments else 1
    found = told_truly(lambda: traced(FolderStyle(), epochs, collate_fn=slow_collate, **arguments))
    assert (found.samples, found.traced, found.batches) == (24 * epochs, 24 * epochs, 6 * epochs)
    assert not found.reasons
    assert set(found.parts) >= {("decode", "loader"), ("transform", "First"), ("transform", "Second"), ("collate", "")}


@pytest.mark.sleeping
@pytest.mark.parametrize("method", ["forkserver", pytest.param("spawn", marks=pytest.mark.slow)])
def test_every_stage_is_told_however_a_worker_starts(method: str) -> None:
    """It starts once, and has an epoch for each attempt: its imports take seconds."""
    arguments: dict[str, Any] = {"num_workers": 1, "multiprocessing_context": method, "persistent_workers": True}
    loader = DataLoader(FolderStyle(), batch_size=4, collate_fn=slow_collate, **arguments)
    MADE.append((loader, state_of(loader)))
    trace = LoaderTrace(loader)

    def epoch() -> tuple[list[Any], Traced]:
        began = trace.mark()
        return list(trace.batches()), trace.read(began)

    found = told_truly(epoch)
    trace.stop()
    assert (found.samples, found.traced, found.batches) == (24, 24, 6)
    assert not found.reasons
    assert set(found.parts) >= {("decode", "loader"), ("transform", "First"), ("transform", "Second"), ("collate", "")}


@pytest.mark.sleeping
def test_stages_add_up_to_the_time_of_a_sample() -> None:
    for _ in range(ATTEMPTS):  # a neighbor may take the CPU between two of our clocks
        _, found = traced(FolderStyle())
        stages_s = sum(per_sample(found, stage) for stage in ("sample", "read", "decode", "transform"))
        whole_s = sum(found.times.sums_s) / found.samples
        if stages_s == pytest.approx(whole_s, rel=0.02):
            break
    assert stages_s == pytest.approx(whole_s, rel=0.02)


@pytest.mark.timed
def test_cpu_time_is_apart_from_wall_time() -> None:
    _, found = traced(FolderStyle(), num_workers=1)
    spun, slept = found.parts["transform", "First"], found.parts["decode", "loader"]
    assert slept.cpu_s < 0.2 * slept.wall_s
    assert spun.cpu_s > 0.2 * spun.wall_s


def test_the_slowest_sample_is_named_with_its_stage() -> None:
    for _ in range(ATTEMPTS):  # another program may delay some other sample even longer
        _, found = traced(FolderStyle(), num_workers=2)
        slowest = found.slowest[0]
        if slowest.index == 7:
            break
    assert (slowest.index, slowest.stage[0]) == (7, "sample")
    assert slowest.wall_s > 0.03


def test_the_dataset_s_own_state_stays_the_user_s() -> None:
    dataset = FolderStyle()
    traced(dataset)
    assert dataset.made == 24


@pytest.mark.sleeping
@pytest.mark.parametrize("workers", [0, 2])
def test_samples_made_in_one_call_are_counted(workers: int) -> None:
    found = told_truly(lambda: traced(Batched(), num_workers=workers))
    assert found.samples == found.traced == 24


@pytest.mark.sleeping
@pytest.mark.parametrize("workers", [0, 2])
def test_a_stream_is_timed_sample_by_sample(workers: int) -> None:
    found = told_truly(lambda: traced(Stream(), num_workers=workers))
    assert found.samples == 24


@pytest.mark.sleeping
@pytest.mark.parametrize("workers", [0, 2])
def test_a_stream_that_is_its_own_iterator_is_timed_sample_by_sample(workers: int) -> None:
    found = told_truly(lambda: traced(OwnIterator(12), epochs=2, num_workers=workers))
    assert found.samples == 24 * max(workers, 1)  # each worker has all


@pytest.mark.sleeping
@pytest.mark.parametrize("workers", [0, 1])
def test_a_dataset_without_a_dict_is_timed_as_one_stage(workers: int) -> None:
    assert told_truly(lambda: traced(Slotted(), num_workers=workers)).samples == 12


@pytest.mark.sleeping
@pytest.mark.parametrize("workers", [0, 1])
def test_datasets_within_datasets_show_their_stages(workers: int) -> None:
    nested = Subset(ConcatDataset([FolderStyle(8), FolderStyle(16)]), list(range(2, 22)))
    assert told_truly(lambda: traced(nested, num_workers=workers)).samples == 20


@pytest.mark.parametrize("workers", [0, 1])
def test_the_inside_of_an_opaque_dataset_is_seen_through_the_libraries_it_calls(photos: Path, workers: int) -> None:
    paths = sorted(map(str, photos.rglob("*.jpg")))
    batches, found = traced(Files(paths), num_workers=workers)
    assert len(batches) == 6
    assert per_sample(found, "read") > 0
    assert per_sample(found, "decode") > 0
    assert {part for stage, part in found.parts if stage == "transform"} == {"PILToTensor", "Resize"}
    assert {slow.path for slow in found.slowest} & set(paths)
    assert all(slow.path in ("", paths[slow.index or 0]) for slow in found.slowest)


@pytest.mark.sleeping
@pytest.mark.parametrize("workers", [0, 1])
def test_a_transform_of_torchvision_v2_is_told_step_by_step(workers: int) -> None:
    assert told_truly(lambda: traced(FolderStyle(compose=v2.Compose), num_workers=workers)).samples == 24


def test_a_transform_that_is_one_function_has_its_name() -> None:
    dataset = FolderStyle()
    dataset.transform = Step(0.0005)
    _, found = traced(dataset)
    assert ("transform", "Step") in found.parts


@pytest.mark.parametrize("workers", [1, 2])
def test_the_user_s_worker_init_fn_still_runs(workers: int) -> None:
    class Opened(FolderStyle):
        opened = -1

        def __getitem__(self, index: int) -> Any:
            assert self.opened >= 0
            return super().__getitem__(index)

    batches, found = traced(Opened(), num_workers=workers, worker_init_fn=remember)
    assert len(batches) == 6
    assert found.samples == 24


@pytest.mark.usefixtures("torch_looks_often")
@pytest.mark.parametrize("workers", [0, 1])
def test_what_a_dataset_raises_passes_through_and_the_rest_is_kept(workers: int) -> None:
    loader = DataLoader(Raises(), batch_size=4, num_workers=workers)
    MADE.append((loader, state_of(loader)))
    trace = LoaderTrace(loader)
    with pytest.raises(ValueError, match="planted"):
        list(trace.batches())
    found = trace.read()
    assert 4 <= found.samples < 12
    trace.stop()
    gc.collect()  # ends the workers now, and not during another test


def test_what_is_counted_after_a_mark_leaves_out_what_was_before() -> None:
    loader = DataLoader(FolderStyle(), batch_size=4)
    trace = LoaderTrace(loader)
    batches = trace.batches()
    next(batches)
    moment = trace.mark()
    next(batches)
    assert trace.read(moment).samples == 4
    assert trace.read().samples == 8
    trace.stop()


def test_nothing_is_traced_after_stop() -> None:
    loader = DataLoader(FolderStyle(), batch_size=4, num_workers=1, persistent_workers=True)
    trace = LoaderTrace(loader)
    list(trace.batches())
    trace.stop()
    assert len(list(loader)) == 6
    assert trace.read().samples == 24


def test_very_short_samples_are_thinned_out() -> None:
    class Tiny(Dataset[int]):
        def __len__(self) -> int:
            return 5_000

        def __getitem__(self, index: int) -> int:
            return index

    batches, found = traced(Tiny(), batch_size=100)
    assert len(batches) == 50
    assert found.samples == 5_000
    assert 0 < found.traced < 500


class ByGenerator(DataLoader[Any]):
    """One whose epoch is a generator, as of fastai."""

    def __iter__(self) -> Any:
        yield from self.dataset  # type: ignore[misc]


def test_a_loader_that_is_a_generator_keeps_no_batch_that_the_loop_drops() -> None:
    source: Any = Followed(5)
    trace = LoaderTrace(ByGenerator(source, batch_size=None))
    for batch in trace.batches():
        del batch
    trace.stop()
    assert source.freed == [True] * 5


@pytest.mark.parametrize("persistent", [False, True])
def test_the_items_of_a_list_are_timed_in_workers_from_their_second_batch_on(*, persistent: bool) -> None:
    items = [torch.full((3,), float(number)) for number in range(64)]
    _, found = traced(items, epochs=2, num_workers=2, persistent_workers=persistent, collate_fn=slow_list)
    assert found.reasons == ()
    assert found.samples == 2 * (64 - 2 * 4)  # the first batch of each worker and epoch was made before
    assert ("collate", "") in found.parts


def slow_list(samples: list[torch.Tensor]) -> torch.Tensor:
    time.sleep(2e-3)
    return torch.stack(samples)
