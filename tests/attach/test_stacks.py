"""What py-spy writes, and what its stacks say of a loader."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from loaderbench.attach.reading import IN_THREAD, NO_LOADER, read_stacks
from loaderbench.attach.stacks import Stack, Stacks, parse
from loaderbench.code_places import CodeFrame, CodeStack
from loaderbench.diagnosis.hotspots import find_hotspots
from loaderbench.recorder.code_looks import stage_of
from loaderbench.records import CodeLooks, Trial

PACKAGES = "/env/lib/python3.11/site-packages"
LOADER = f"{PACKAGES}/torch/utils/data/dataloader.py"
FETCH = CodeFrame(f"{PACKAGES}/torch/utils/data/_utils/fetch.py", 54, "_MapDatasetFetcher.fetch")
WORKER = CodeFrame(f"{PACKAGES}/torch/utils/data/_utils/worker.py", 300, "_worker_loop")
NEXT = CodeFrame(LOADER, 700, "_BaseDataLoaderIter.__next__")
IDLE = CodeFrame("/usr/lib/python3.11/multiprocessing/queues.py", 113, "Queue.get")
CROP = CodeFrame(f"{PACKAGES}/PIL/Image.py", 1, "crop")
SAMPLE = CodeFrame("/home/me/photos.py", 3, "Photos.__getitem__")
MAIN, FIRST, SECOND = 10, 11, 12


def trial(looks: CodeLooks) -> Trial:
    return Trial(role="profile", id="a", config={}, round=1, status="completed", code_looks=looks)


def stack(pid: int, *frames: CodeFrame, looks: int = 1, thread: int | None = None) -> Stack:
    return Stack(pid, frames, looks, thread is None)


def test_a_line_has_processes_a_thread_frames_and_a_count() -> None:
    line = (
        'process 10:"python train.py";process 11:"python train.py --name a;b";thread (11): MainThread;'
        "<module> (/home/me/train.py:4);Photos.__getitem__ (/home/me/photos.py:3);f (a (b).py) 7\n"
    )
    found = parse(line, 10)
    assert found is not None
    assert (found.pid, found.looks, found.is_main_thread) == (11, 7, True)
    assert found.frames[1:] == (SAMPLE, CodeFrame("a (b).py", 0, "f"))


@pytest.mark.parametrize("line", ["", "no thread 3", "thread (1): a;f (g.py:1)", "process 1:x;f (g.py:1) 4"])
def test_anything_else_is_no_stack(line: str) -> None:
    assert parse(line, 10) is None


@pytest.mark.parametrize(
    ("line", "is_main"),
    [
        ("thread (10);f (g.py:1) 2", True),
        ("thread (12): feeds;f (g.py:1) 2", False),
        ("thread (1): MainThread;f (g.py:1) 2", True),  # in a container, seen from outside
        ("thread (0x7F1F);<module> (g.py:1) 2", True),  # Python 3.10
        ("thread (0x7F1F);_run_module_as_main (<frozen runpy>:1);<module> (g.py:1) 2", True),
        ("thread (0x7F2F);Thread._bootstrap (threading.py:1);f (g.py:1) 2", False),
    ],
)
def test_the_main_thread_is_told_by_number_name_or_outermost_frame(line: str, is_main: bool) -> None:
    found = parse(line, 10)
    assert found is not None
    assert found.is_main_thread is is_main


FEEDS = "Thread._bootstrap (threading.py:1);Queue._feed (/usr/lib/python3.13/multiprocessing/queues.py:240) 2"


@pytest.mark.parametrize(
    ("line", "senders"),
    [
        (f"process 10:a;process 11:b;thread (15): QueueFeederThread;{FEEDS}", {15}),
        (f"process 10:a;process 11:b;thread (0x7F2F);{FEEDS}", set()),  # Python 3.10 hides the thread's ID
        ("process 10:a;process 11:b;thread (15): mine;Mine._feed (/home/me/mine.py:1) 2", set()),
        ("process 10:a;process 11:b;thread (11): MainThread;Queue.get (multiprocessing/queues.py:113) 2", set()),
    ],
)
def test_a_thread_that_sends_batches_is_known_by_its_code(line: str, senders: set[int]) -> None:
    found = parse(line, 10)
    assert found is not None
    assert Stacks(all=(found,)).senders == senders


@pytest.mark.parametrize(
    ("stage", "frames"),
    [
        ("decode", [SAMPLE, CodeFrame(f"{PACKAGES}/PIL/ImageFile.py", 425, "ImageFile.load")]),
        ("decode", [SAMPLE, CROP, CodeFrame(f"{PACKAGES}/PIL/a.py", 2, "load")]),
        ("transform", [SAMPLE, CodeFrame(f"{PACKAGES}/PIL/Image.py", 2440, "Image.resize")]),
        ("transform", [SAMPLE, CodeFrame(f"{PACKAGES}/torchvision/transforms/transforms.py", 95, "Compose.__call__")]),
        ("transform", [SAMPLE, CodeFrame(f"{PACKAGES}/albumentations/core/composition.py", 95, "Compose.__call__")]),
        ("transform", [SAMPLE, CodeFrame("/home/me/photos.py", 9, "augment")]),
        ("read", [SAMPLE, CodeFrame("/usr/lib/python3.11/zipfile.py", 1500, "ZipFile.read")]),
        ("collate", [CodeFrame(f"{PACKAGES}/torch/utils/data/_utils/collate.py", 398, "default_collate")]),
        ("collate", [CodeFrame("/home/me/train.py", 8, "my_collate")]),
        ("sample", [SAMPLE]),
        ("sample", []),
    ],
)  # fmt: skip
def test_a_stage_is_named_by_library_or_function(stage: str, frames: list[CodeFrame]) -> None:
    assert stage_of(CodeStack("", tuple(frames))) == stage


@pytest.mark.parametrize(
    ("stage", "line"),
    [("decode", "image = cv2.imread(path)"), ("read", "data = file.read()"), ("sample", "x = compute(path)")],
)
def test_a_compiled_function_is_named_by_the_line_that_calls_it(tmp_path: Path, stage: str, line: str) -> None:
    (tmp_path / "photos.py").write_text(f"{line}\n")
    assert stage_of(CodeStack("", (CodeFrame(str(tmp_path / "photos.py"), 1, "Photos.__getitem__"),))) == stage


def test_waits_work_and_idle_workers_are_told_apart() -> None:
    poll = CodeFrame("/usr/lib/python3.11/multiprocessing/connection.py", 440, "Connection._poll")
    at_work = stack(FIRST, NEXT, WORKER, FETCH, SAMPLE, looks=80)
    seen = Stacks(
        own=(
            stack(MAIN, CodeFrame("/home/me/train.py", 5, "<module>"), NEXT, poll, looks=60),
            stack(MAIN, NEXT, CodeFrame(f"{PACKAGES}/torch/reductions.py", 9, "rebuild_storage_fd"), looks=20),
            stack(MAIN, CodeFrame(LOADER, 5, "DataLoader.__iter__"), looks=10),
            stack(MAIN, CodeFrame("/home/me/train.py", 6, "<module>"), looks=20),
        ),
        all=(
            stack(MAIN, NEXT, poll, looks=7),
            at_work,
            stack(FIRST, NEXT, WORKER, IDLE, poll, looks=20),
            stack(SECOND, NEXT, WORKER, IDLE, poll, looks=100),
            stack(SECOND, CodeFrame("/usr/lib/python3.11/multiprocessing/queues.py", 1, "Queue._feed"), thread=99),
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
    (line,) = find_hotspots([trial(found.code)])
    assert (line.file, line.line, line.stage, line.share, line.below) == ("photos.py", 3, "sample", 1.0, "")


SPAWN = CodeFrame("/usr/lib/python3.11/multiprocessing/spawn.py", 120, "_main")
RUN = CodeFrame("/usr/lib/python3.11/multiprocessing/process.py", 300, "BaseProcess._bootstrap")


@pytest.mark.parametrize(
    ("frames", "starts"),
    [
        ((SPAWN, CodeFrame("/home/me/train.py", 1, "<module>")), True),
        ((SPAWN, RUN, WORKER, CodeFrame("/home/me/train.py", 7, "opens_an_index")), True),
        ((SPAWN, RUN, CodeFrame("/home/me/train.py", 9, "of_another_pool")), False),
        ((SPAWN, RUN, WORKER), False),
    ],
)
def test_a_wait_for_workers_that_start_is_no_wait_for_a_batch(frames: tuple[CodeFrame, ...], starts: bool) -> None:
    poll = CodeFrame("/usr/lib/python3.11/multiprocessing/connection.py", 440, "Connection._poll")
    ends = CodeFrame(LOADER, 1500, "_MultiProcessingDataLoaderIter._shutdown_workers")
    main = (
        stack(MAIN, NEXT, poll, looks=60),
        stack(MAIN, NEXT, ends, poll, looks=10),
        stack(MAIN, CodeFrame("/home/me/train.py", 6, "<module>"), looks=30),
    )
    of_workers = [stack(pid, *frames, looks=40) for pid in (FIRST, SECOND)]
    seen = Stacks(main, (*main, *of_workers, stack(FIRST, WORKER, FETCH, SAMPLE, looks=20)), ())
    found = read_stacks(seen, MAIN, workers=2, folder="").inside
    assert found is not None
    assert found.startup_share == pytest.approx(0.5 if starts else 0.1)
    assert found.waits == {"waiting": 1.0}


def test_a_main_thread_that_was_never_seen_to_wait_has_no_parts_of_a_wait() -> None:
    main = stack(MAIN, CodeFrame("/home/me/train.py", 6, "<module>"), looks=100)
    seen = Stacks((main,), (main, stack(FIRST, WORKER, FETCH, SAMPLE, looks=20)), ())
    found = read_stacks(seen, MAIN, workers=1, folder="")
    assert found.wait_share == 0
    assert found.inside is not None
    assert found.inside.waits == {}


def test_without_workers_the_main_process_is_what_loads() -> None:
    resize = CodeFrame(f"{PACKAGES}/PIL/Image.py", 2440, "Image.resize")
    seen = (stack(MAIN, NEXT, FETCH, SAMPLE, resize, looks=30), stack(MAIN, SAMPLE, looks=10))
    found = read_stacks(Stacks(seen, seen, seen), MAIN, workers=0, folder="/elsewhere")
    assert found.wait_share == 0.75
    assert found.inside is not None
    assert found.code is not None
    assert found.inside.idle_share is None
    assert found.inside.not_measured["idle_share"]
    (line,) = find_hotspots([trial(found.code)])
    assert (line.file, line.line, line.stage, line.below) == ("photos.py", 3, "transform", "Image.resize")


def test_why_stacks_say_nothing() -> None:
    assert read_stacks(Stacks(why_not="py-spy is not there"), MAIN, 1, "").why_not == "py-spy is not there"
    few = read_stacks(Stacks((stack(MAIN, NEXT, looks=9),)), MAIN, 1, "")
    assert "only 9 times" in few.why_not
    elsewhere = Stacks((stack(MAIN, SAMPLE, looks=50),))
    assert read_stacks(elsewhere, MAIN, 0, "").why_not == NO_LOADER
    in_thread = Stacks(
        (*elsewhere.own, stack(MAIN, CodeFrame("/usr/lib/python3.11/threading.py", 1, "run"), NEXT, thread=9))
    )
    for workers in (0, 2):
        assert read_stacks(in_thread, MAIN, workers, "").why_not == IN_THREAD
    at_a_long_step = read_stacks(elsewhere, MAIN, 2, "")
    assert (at_a_long_step.wait_share, at_a_long_step.inside) == (0.0, None)


def test_workers_of_torchdata_are_workers() -> None:
    stateful = CodeFrame(f"{PACKAGES}/torchdata/stateful_dataloader/worker.py", 300, "_worker_loop")
    main = stack(MAIN, NEXT, looks=50)
    seen = Stacks((main,), (main, stack(FIRST, stateful, FETCH, SAMPLE, looks=20)), ())
    found = read_stacks(seen, MAIN, workers=1, folder="").inside
    assert found is not None
    assert found.stages.keys() == {"sample"}


def test_workers_of_an_idle_loader_are_left_out() -> None:
    main = stack(MAIN, NEXT, looks=50)
    at_work, idle = stack(FIRST, WORKER, FETCH, SAMPLE, looks=20), stack(SECOND, WORKER, IDLE, looks=40)
    found = Stacks((main,), (main, at_work, idle), (at_work, idle)).without({SECOND})
    assert (found.own, found.all, found.running) == ((main,), (main, at_work), (at_work,))


def test_the_fetchers_own_line_says_that_it_collates(tmp_path: Path) -> None:
    fetcher = tmp_path / "torch/utils/data/_utils/fetch.py"
    fetcher.parent.mkdir(parents=True)
    fetcher.write_text("data = [self.dataset[i] for i in indices]\nreturn self.collate_fn(data)\n")
    mine = CodeFrame("/home/me/photos.py", 9, "Mine.__call__")
    seen = (
        stack(MAIN, NEXT, CodeFrame(str(fetcher), 1, "fetch"), SAMPLE, looks=30),
        stack(MAIN, NEXT, CodeFrame(str(fetcher), 2, "fetch"), mine, looks=10),
    )
    found = read_stacks(Stacks(seen, seen, seen), MAIN, workers=0, folder="/home/me")
    assert found.inside is not None
    assert {stage: looks.share for stage, looks in found.inside.stages.items()} == {"sample": 0.75, "collate": 0.25}
