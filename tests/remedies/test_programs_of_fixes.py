"""Programs that fixes print do what was measured, or say what was not."""

from __future__ import annotations

import random
import re
import tarfile
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from planted_causes import CAUSES, FACTS, FOLDER, Case as Cause, diagnosis

from loaderbench.records import Config, Recommendation, Trial, Tried, Verification
from loaderbench.remedies import REMEDIES, Findings, candidates_for, recommend
from loaderbench.remedies.findings import Diagnosis
from loaderbench.statistics.judging import judged

PRESENT: Config = {"num_workers": 2, "batch_size": 64}
CODE = {remedy.id: getattr(remedy, "code", None) or "" for remedy in REMEDIES}


def card(id_: str, change: Config, found: Diagnosis) -> Recommendation:
    """The card of a fix that was tried in five pairs, and gained."""
    changed = {**PRESENT, **change}
    trials = [
        Trial(
            id=f"v{number}-{name}", role="remedy", config=config, round=number, status="completed", samples_per_s=rate
        )
        for number in range(5)
        for name, config, rate in (("present", PRESENT, 100.0 + number % 2), (id_, changed, 150.0))
    ]
    tried = Tried(id=id_, change=change, against=PRESENT, accepted=True)
    verification = judged(Verification(present=PRESENT, config=changed, tried=(tried,), ended=""), trials, PRESENT)
    options = None if found.options is None else dict(found.options)
    findings = Findings(
        [], [], None, PRESENT, {}, False,
        diagnosis=found, verification=verification, remedy_trials=trials, options=options,
    )  # fmt: skip
    return next(one for one in recommend(findings) if one.id == id_)


def test_the_program_for_a_loader_of_the_users_keeps_its_arguments() -> None:
    traits = {"own_arguments": "batch_size=16, shuffle=True, collate_fn=pad"}
    found = replace(diagnosis(CAUSES["more_workers"]), options=None, traits=traits)
    program = card("more_workers", {"num_workers": 4}, found).snippet or ""
    for argument in ("batch_size=64", "num_workers=4", "shuffle=True", "collate_fn=pad"):
        assert f"    {argument},\n" in program
    assert "batch_size=16" not in program


def test_a_batch_that_was_halved_to_fit_has_its_caveat() -> None:
    found = diagnosis(CAUSES["more_workers"])
    whole, half = (card("more_workers", {"num_workers": 4, "batch_size": size}, found) for size in (64, 32))
    assert "batch" not in (whole.caveat or "")
    assert "batch" in (half.caveat or "")


@pytest.mark.parametrize(("files", "said"), [(1_500, False), (15_000, True)])
def test_memory_that_was_measured_with_a_part_of_the_images_is_said_to_be(files: int, said: bool) -> None:
    found = replace(diagnosis(CAUSES["memory_cache"]), files=files, shared_memory_bytes=1 << 40)
    caveat = card("memory_cache", {"image_cache": "shared_memory", "presize": 256}, found).caveat or ""
    assert ("Memory was measured with one in 8 images" in caveat) is said


def test_smaller_copies_are_not_tried_if_storage_is_the_limit() -> None:
    def is_tried(limit: str) -> bool:
        found = replace(diagnosis(Cause("read", limit, FACTS, options=FOLDER)), profile=False)
        assert "presize_offline" in {one.id for one in recommend(_findings(found))}
        return "presize_offline" in {one.id for one in candidates_for(found)}

    assert is_tried("memory")
    assert not is_tried("storage_bandwidth")


def _findings(found: Diagnosis) -> Findings:
    return Findings([], [], None, PRESENT, {}, False, diagnosis=found, options=dict(found.options or {}))


@pytest.mark.parametrize(("transform", "tried"), [("imagenet_train", True), ("mine:make", False)])
def test_normalizing_a_transform_of_the_users_is_advice_in_words(transform: str, tried: bool) -> None:
    cause = Cause("transport", "memory", options={**FOLDER, "transform": transform})
    found = replace(diagnosis(cause), profile=False)
    advice = next(one for one in recommend(_findings(found)) if one.id == "uint8_transport")
    assert ("uint8_transport" in {one.id for one in candidates_for(found)}) is tried
    assert ("if samples are float32" in advice.title) is not tried
    assert ("DataLoader(" in (advice.snippet or "")) is tried


def test_files_are_copied_to_a_faster_disk_once_for_each_folder(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "fast"))
    (tmp_path / "fast").mkdir()
    for name in ("train", "val"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
        for _ in range(2):
            names: dict[str, Any] = {"root": str(tmp_path / name)}
            exec(CODE["cold_cache"], names)
            assert (names["root"] / "file").read_text() == name
    assert len(list((tmp_path / "fast").iterdir())) == 2


def test_shards_give_each_file_once_and_in_random_order(tmp_path: Path) -> None:
    shards = []
    for number in range(2):
        folder = tmp_path / f"{number}" / "ab"[number]
        folder.mkdir(parents=True)
        shards.append(str(tmp_path / f"{number}.tar"))
        with tarfile.open(shards[-1], "w") as tar:
            for value in range(20):
                Image.new("L", (1, 1), 20 * number + value).save(folder / f"{value}.png")
                tar.add(folder / f"{value}.png", f"{folder.name}/{value}.png")
    names: dict[str, Any] = {}
    exec(CODE["pack_small_files"], names)
    random.seed(0)
    dataset = names["Shards"](shards, lambda image: image.getpixel((0, 0))[0], ["a", "b"], buffer=8)
    samples = list(dataset)
    assert sorted(samples) == [(value, value // 20) for value in range(40)]
    assert samples != sorted(samples)


def test_snippets_import_what_they_use() -> None:
    for code in filter(None, (getattr(remedy, "code", None) for remedy in REMEDIES)):
        uses, lines = "torch." in code, code.splitlines()
        assert not uses or any(re.match(r"(import|from) torch\b", line) for line in lines), code
