"""The file of a checkup is JSON that holds what was expected and found, and nothing that names a user or a machine."""

from __future__ import annotations

import getpass
import json
import platform
from pathlib import Path

import pytest

from loaderbench.environment import describe_machine
from loaderbench.gpu_checkup.document import document, document_json, passed
from loaderbench.gpu_checkup.records import CheckState, GpuCheck
from loaderbench.records import Gpu, Interval

GPU = Gpu(0, "GPU-5a5a", "NVIDIA Z1", 8 << 30)


def made(*checks: GpuCheck) -> str:
    return document_json(document(describe_machine("fork", (GPU,), {}), checks))


def check(said: str = "", state: CheckState = "passed") -> GpuCheck:
    found = {"wait_s": Interval(0.02, 0.019, 0.021)}
    return GpuCheck(id="wait", title="Wait", state=state, said=said, expected={"wait_s": 0.02}, found=found)


def test_it_holds_machine_versions_and_each_check_with_expected_and_found() -> None:
    found = json.loads(made(check()))
    assert found["passed"] is True
    assert found["environment"]["gpus"][0]["name"] == "NVIDIA Z1"
    assert {"torch", "loaderbench"} <= set(found["environment"]["versions"])
    (one,) = found["checks"]
    assert one["expected"] == {"wait_s": 0.02}
    assert one["found"] == {"wait_s": {"est": 0.02, "lo": 0.019, "hi": 0.021}}


def test_it_names_no_path_user_host_or_number_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: "marie")
    monkeypatch.setattr(platform, "node", lambda: "curie-7")
    monkeypatch.setattr(Path, "home", lambda: Path("/lab/marie"))
    said = "error in /data/projects/secret/kernel.cu:7 and /lab/marie/x.py on curie-7, told to marie; /dev/shm is full"
    text = made(check(said))
    assert not [name for name in ("secret", "marie", "curie", "GPU-5a5a") if name in text]
    assert "/dev/shm is full" in text


@pytest.mark.parametrize(
    ("state", "all_passed"), [("passed", True), ("warning", True), ("failed", False), ("not_checked", False)]
)
def test_a_warning_is_no_failure(state: CheckState, all_passed: bool) -> None:
    assert passed([check(), check(state=state)]) is all_passed
