"""A failure names what this machine has, and what was needed where that is known."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from loaderbench.records import Config, Failure, PlannedTrial
from loaderbench.runner import TrialOrder, failure_details
from loaderbench.runner.failure_details import explained
from loaderbench.suite import Suite
from loaderbench.suite.model import prefetched_bytes


def order(config: Config, dataset: dict[str, Any] | None = None, loader: dict[str, Any] | None = None) -> TrialOrder:
    loader = {"batch_size": 32} if loader is None else loader
    suite = Suite.model_validate({"dataset": dataset or {"root": "x"}, "loader": loader})
    return TrialOrder(
        PlannedTrial(id="t", role="sweep", config=config, round=1), suite, Path(), (), "none", Path("log")
    )


def hint(kind: str, config: Config, kills: int | None = 0) -> str:
    return explained(Failure(kind, "", "fewer workers"), order(config), kills).hint


def of_bad_image(photos: Path, config: Config, name: str = "") -> str:
    files = [str(path) for path in sorted(photos.rglob("*.jpg"))]
    named = str(photos / name) if name else files[0]
    asked = replace(order(config), samples=tuple((path, 0) for path in files))
    failure = Failure("bad_image", f"BadImageError: {named}: RuntimeError: what", "repair it")
    return explained(failure, asked, None).hint


def needed(asked: TrialOrder) -> int | None:
    return prefetched_bytes(asked.suite, asked.planned.config)


def test_the_batches_under_way_are_counted_in_bytes() -> None:
    floats = needed(order({"num_workers": 4}))
    assert floats == 4 * 2 * 32 * 3 * 224 * 224 * 4
    assert needed(order({"num_workers": 4, "normalize": "device"})) == floats / 4
    assert needed(order({"num_workers": 4, "prefetch_factor": 6})) == floats * 3


@pytest.mark.parametrize("dataset", [{"kind": "target", "target": "a:b"}, {"root": "x", "transform": "my:recipe"}])
def test_of_samples_of_unknown_size_nothing_is_counted(dataset: dict[str, Any]) -> None:
    assert needed(order({"num_workers": 4}, dataset)) is None


@pytest.mark.parametrize(
    ("arguments", "loads"),
    [
        ({"num_workers": 1, "batch_size": 32}, "1 worker with batches of 32; "),
        ({"num_workers": 4}, "4 workers; "),
        ({"batch_size": 32}, "batches of 32; "),
        ({}, ""),
    ],
)
def test_only_what_the_arguments_say_of_a_loader_is_told(arguments: Config, loads: str) -> None:
    """A target may make its own loader."""
    dataset = {"kind": "target", "target": "a:b"}
    asked = order(arguments, dataset, loader={})
    said = explained(Failure("host_memory", "", "fewer workers"), asked, 0).hint
    assert re.search(rf"(^|of its processes; ){loads}free memory: [\d.]+ [MG]iB", said)
    assert needed(order(arguments, loader={})) == (3 * 224 * 224 * 4 * 2 * 32 if len(arguments) == 2 else None)


def test_without_workers_nothing_is_said_of_their_need_of_shared_memory() -> None:
    assert hint("shared_memory_full", {"num_workers": 0}).startswith("/dev/shm: ")


def test_shared_memory_is_told_as_needed_and_as_it_is() -> None:
    said = hint("shared_memory_full", {"num_workers": 4})
    assert said.startswith("4 workers with 2 batches of 32 each: about 147 MiB needed; /dev/shm: ")
    assert said.endswith(". Fewer workers")


@pytest.mark.parametrize("kind", ["worker_killed", "process_killed", "fork_server_killed"])
@pytest.mark.parametrize(("after", "by_kernel"), [(3, False), (4, True)])
def test_what_the_kernel_did_not_kill_is_not_said_to_have_run_out_of_memory(
    monkeypatch: pytest.MonkeyPatch, kind: str, after: int, by_kernel: bool
) -> None:
    monkeypatch.setattr(failure_details, "oom_kills", lambda: after)
    found = explained(Failure(kind, "", "probably out of memory"), order({"num_workers": 4}), 3)
    assert found.by_oom_killer is by_kernel
    assert ("Out of memory: use fewer workers" in found.hint) is by_kernel
    assert ("may have killed it" in found.hint) is not by_kernel


def test_an_end_for_want_of_memory_says_whether_the_kernel_counted_it() -> None:
    assert "free memory: " in hint("worker_killed", {"num_workers": 4}, None)
    assert "2 workers with batches of 32" in hint("host_memory", {"num_workers": 2})


def test_what_pillow_reads_and_another_decoder_does_not_is_not_called_broken(photos: Path) -> None:
    assert of_bad_image(photos, {"decoder": "torchvision"}) == (
        "Pillow decodes this file: use decoder: pillow, not torchvision"
    )


def test_a_damaged_copy_or_object_is_not_blamed_on_the_file(photos: Path) -> None:
    copied = of_bad_image(photos, {"decoder": "pillow", "format": "tar"})
    assert copied.startswith("Pillow decodes the file itself; the copy is damaged: delete ")
    assert copied.endswith("/formats/tar to write it again")
    stored = of_bad_image(photos, {"decoder": "pillow", "storage": "http://127.0.0.1:1/x"})
    assert stored == ("Pillow decodes the file itself; the object in http://127.0.0.1:1/x is damaged: upload it again")


def test_a_file_that_pillow_cannot_decode_either_is_counted_with_any_decoder(tmp_path: Path) -> None:
    Image.new("RGB", (8, 8)).save(tmp_path / "good.jpg")
    (tmp_path / "bad.jpg").write_text("no image")
    for config in ({"decoder": "torchvision"}, {"decoder": "pillow", "format": "tar"}):
        assert of_bad_image(tmp_path, config, "bad.jpg") == "Pillow cannot decode 1 of 2 files. Repair it"


def test_what_this_machine_knows_nothing_of_keeps_its_hint() -> None:
    assert hint("bad_image", {}) == "fewer workers"


def test_a_full_gpu_is_explained_by_the_sizes_in_torch_s_message() -> None:
    message = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 8.00 "
        "GiB of which 1.00 GiB is free. Including non-PyTorch memory, this process has 7.00 GiB memory in use."
    )
    found = explained(Failure("device_memory", message, "use a smaller batch"), order({"batch_size": 512}), 0)
    assert (found.limit_bytes, found.needed_bytes) == (8 << 30, 9 << 30)
    assert found.hint == ("The GPU has 8.0 GiB; this process held 7.0 GiB and asked for 2.0 GiB. Use a smaller batch")
