"""What py-spy writes, and what its stacks say of a loader."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from loaderbench.attach.reading import NO_LOADER, read_stacks, stage_of
from loaderbench.attach.stacks import Frame, Stack, Stacks, parse

PACKAGES = "/env/lib/python3.11/site-packages"
LOADER = f"{PACKAGES}/torch/utils/data/dataloader.py"
FETCH = Frame("_MapDatasetFetcher.fetch", f"{PACKAGES}/torch/utils/data/_utils/fetch.py", 54)
WORKER = Frame("_worker_loop", f"{PACKAGES}/torch/utils/data/_utils/worker.py", 300)
NEXT = Frame("_BaseDataLoaderIter.__next__", LOADER, 700)
IDLE = Frame("Queue.get", "/usr/lib/python3.11/multiprocessing/queues.py", 113)
SAMPLE = Frame("Photos.__getitem__", "/home/me/photos.py", 3)
MAIN, FIRST, SECOND = 10, 11, 12


def stack(pid: int, *frames: Frame, looks: int = 1, thread: int | None = None) -> Stack:
    return Stack(pid, pid if thread is None else thread, frames, looks)


def test_a_line_has_processes_a_thread_frames_and_a_count() -> None:
    line = (
        'process 10:"python train.py";process 11:"python train.py --name a;b";thread (11): MainThread;'
        "<module> (/home/me/train.py:4);Photos.__getitem__ (/home/me/photos.py:3);f (a (b).py) 7\n"
    )
    found = parse(line, 10)
    assert found is not None
    assert (found.pid, found.thread, found.looks, found.is_main_thread) == (11, 11, 7, True)
    assert found.frames[1:] == (SAMPLE, Frame("f", "a (b).py", 0))


@pytest.mark.parametrize("line", ["", "no thread 3", "thread (1): a;f (g.py:1)", "process 1:x;f (g.py:1) 4"])
def test_anything_else_is_no_stack(line: str) -> None:
    assert parse(line, 10) is None


def test_a_thread_without_a_name_of_the_system_has_its_number() -> None:
    found = parse("thread (0x1F);f (g.py:1) 2", 10)
    assert found is not None
    assert (found.pid, found.thread, found.frames) == (10, 31, (Frame("f", "g.py", 1),))


@pytest.mark.parametrize(
    ("stage", "frames"),
    [
        ("decode", [SAMPLE, Frame("ImageFile.load", f"{PACKAGES}/PIL/ImageFile.py", 425)]),
        ("decode", [SAMPLE, Frame("crop", f"{PACKAGES}/PIL/Image.py", 1), Frame("load", f"{PACKAGES}/PIL/a.py", 2)]),
        ("transform", [SAMPLE, Frame("Image.resize", f"{PACKAGES}/PIL/Image.py", 2440)]),
        ("transform", [SAMPLE, Frame("Compose.__call__", f"{PACKAGES}/torchvision/transforms/transforms.py", 95)]),
        ("transform", [SAMPLE, Frame("Compose.__call__", f"{PACKAGES}/albumentations/core/composition.py", 95)]),
        ("transform", [SAMPLE, Frame("augment", "/home/me/photos.py", 9)]),
        ("read", [SAMPLE, Frame("ZipFile.read", "/usr/lib/python3.11/zipfile.py", 1500)]),
        ("collate", [Frame("default_collate", f"{PACKAGES}/torch/utils/data/_utils/collate.py", 398)]),
        ("collate", [Frame("my_collate", "/home/me/train.py", 8)]),
        ("sample", [SAMPLE]),
        ("sample", []),
    ],
)  # fmt: skip
def test_a_stage_is_named_by_library_or_function(stage: str, frames: list[Frame]) -> None:
    assert stage_of(frames) == stage


@pytest.mark.parametrize(
    ("stage", "line"),
    [("decode", "image = cv2.imread(path)"), ("read", "data = file.read()"), ("sample", "x = compute(path)")],
)
def test_a_compiled_function_is_named_by_the_line_that_calls_it(tmp_path: Path, stage: str, line: str) -> None:
    (tmp_path / "photos.py").write_text(f"{line}\n")
    assert stage_of([Frame("Photos.__getitem__", str(tmp_path / "photos.py"), 1)]) == stage


def test_waits_work_and_idle_workers_are_told_apart() -> None:
    poll = Frame("Connection._poll", "/usr/lib/python3.11/multiprocessing/connection.py", 440)
    at_work = stack(FIRST, NEXT, WORKER, FETCH, SAMPLE, looks=80)
    seen = Stacks(
        own=(
            stack(MAIN, Frame("<module>", "/home/me/train.py", 5), NEXT, poll, looks=60),
            stack(MAIN, NEXT, Frame("rebuild_storage_fd", f"{PACKAGES}/torch/reductions.py", 9), looks=20),
            stack(MAIN, Frame("DataLoader.__iter__", LOADER, 5), looks=10),
            stack(MAIN, Frame("<module>", "/home/me/train.py", 6), looks=20),
        ),
        all=(
            stack(MAIN, NEXT, poll, looks=7),
            at_work,
            stack(FIRST, NEXT, WORKER, IDLE, poll, looks=20),
            stack(SECOND, NEXT, WORKER, IDLE, poll, looks=100),
            stack(SECOND, Frame("Queue._feed", "/usr/lib/python3.11/multiprocessing/queues.py", 1), thread=99),
        ),
        running=(replace(at_work, looks=20),),
    )
    found = read_stacks(seen, MAIN, workers=2, folder="/home/me")
    assert found.wait_share == pytest.approx(0.8)  # the start of workers is no step
    assert found.inside is not None
    assert found.code is not None
    assert (found.inside.looks, found.inside.idle_share) == (200, 0.6)
    assert found.inside.startup_share == pytest.approx(10 / 110)
    assert found.inside.waits == {"waiting": 0.75, "transport": 0.25}
    assert {name: (one.share, one.running_share) for name, one in found.inside.stages.items()} == {
        "sample": (1.0, 0.25)
    }
    assert [(line.place, line.share, line.below) for line in found.code.lines] == [("photos.py:3", 1.0, "")]


def test_without_workers_the_main_process_is_what_loads() -> None:
    resize = Frame("Image.resize", f"{PACKAGES}/PIL/Image.py", 2440)
    seen = (stack(MAIN, NEXT, FETCH, SAMPLE, resize, looks=30), stack(MAIN, SAMPLE, looks=10))
    found = read_stacks(Stacks(seen, seen, seen), MAIN, workers=0, folder="/elsewhere")
    assert found.wait_share == 0.75
    assert found.inside is not None
    assert found.code is not None
    assert found.inside.idle_share is None
    assert found.inside.not_measured["idle_share"]
    assert [(line.place, line.below) for line in found.code.lines] == [("photos.py:3", "Image.resize")]


def test_why_stacks_say_nothing() -> None:
    assert read_stacks(Stacks(why_not="py-spy is not there"), MAIN, 1, "").why_not == "py-spy is not there"
    few = read_stacks(Stacks((stack(MAIN, NEXT, looks=9),)), MAIN, 1, "")
    assert "9 times only" in few.why_not
    elsewhere = Stacks((stack(MAIN, SAMPLE, looks=50),))
    assert read_stacks(elsewhere, MAIN, 0, "").why_not == NO_LOADER
    at_a_long_step = read_stacks(elsewhere, MAIN, 2, "")
    assert (at_a_long_step.wait_share, at_a_long_step.inside) == (0.0, None)


def test_the_fetchers_own_line_says_that_it_collates(tmp_path: Path) -> None:
    fetcher = tmp_path / "torch/utils/data/_utils/fetch.py"
    fetcher.parent.mkdir(parents=True)
    fetcher.write_text("data = [self.dataset[i] for i in indices]\nreturn self.collate_fn(data)\n")
    mine = Frame("Mine.__call__", "/home/me/photos.py", 9)
    seen = (
        stack(MAIN, NEXT, Frame("fetch", str(fetcher), 1), SAMPLE, looks=30),
        stack(MAIN, NEXT, Frame("fetch", str(fetcher), 2), mine, looks=10),
    )
    found = read_stacks(Stacks(seen, seen, seen), MAIN, workers=0, folder="/home/me")
    assert found.inside is not None
    assert {stage: looks.share for stage, looks in found.inside.stages.items()} == {"sample": 0.75, "collate": 0.25}
